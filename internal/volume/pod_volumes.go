package volume

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/backoff"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
)

// podVolumes is what is known of one pod's volumes. It is forgotten when the pod is
// unmounted, and built up again by Mount after a restart.
type podVolumes struct {
	pod     *v1.Pod // the latest form
	volumes map[string]*mountState
	// gone ends when the pod is to be unmounted: nothing new is begun then.
	gone context.Context
	end  context.CancelFunc
}

// mountState is one volume of one pod. All but turn and hint are guarded by Volumes.mu.
type mountState struct {
	// turn holds a token while no operation runs on the volume.
	turn chan struct{}
	// hint wakes a Mount that waits to try again: what it lacked may be there.
	hint notify.Signal

	mounted  bool
	kept     bool // by a Keep that is under way
	up       up
	failures int

	// watched says that its health is looked after; examined that ailments, which may be
	// none, are what was found last.
	watched, examined bool
	ailments          []v1.VolumeHealthCondition
}

func newMountState() *mountState {
	s := &mountState{turn: make(chan struct{}, 1), hint: notify.New()}
	s.turn <- struct{}{}
	return s
}

// take waits for the volume's turn.
func (s *mountState) take(ctx context.Context) error {
	select {
	case <-s.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *mountState) release() { s.turn <- struct{}{} }

// wakeWaiting has every volume that is not up tried again. Volumes.mu is held.
func (pv *podVolumes) wakeWaiting() {
	for _, state := range pv.volumes {
		if !state.mounted {
			state.hint.Notify()
		}
	}
}

// retries are the delays between attempts at a volume.
var retries = backoff.Backoff{First: 500 * time.Millisecond, Longest: 2*time.Minute + 2*time.Second}

// known returns the state of p's volumes, made if need be, and takes p as the latest form.
func (v *Volumes) known(p *v1.Pod) *podVolumes {
	v.mu.Lock()
	defer v.mu.Unlock()
	pv := v.pods[p.UID]
	if pv == nil {
		pv = &podVolumes{volumes: map[string]*mountState{}}
		pv.gone, pv.end = context.WithCancel(context.Background())
		v.pods[p.UID] = pv
		if v.ended {
			pv.end()
		}
	}
	pv.pod = p
	return pv
}

// wanted lists the volumes that containers of p mount; others cost nothing.
func wanted(p *v1.Pod) []string {
	used := map[string]bool{}
	for c := range pod.Containers(p) {
		for _, m := range c.VolumeMounts {
			used[m.Name] = true
		}
		for _, d := range c.VolumeDevices {
			used[d.Name] = true
		}
	}
	names := make([]string, 0, len(used))
	for i := range p.Spec.Volumes {
		if name := p.Spec.Volumes[i].Name; used[name] {
			names = append(names, name)
		}
	}
	return names
}

func findVolume(p *v1.Pod, name string) *v1.Volume {
	for i := range p.Spec.Volumes {
		if p.Spec.Volumes[i].Name == name {
			return &p.Spec.Volumes[i]
		}
	}
	return nil
}
