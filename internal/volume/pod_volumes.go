package volume

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/backoff"
	"swiftlet/internal/contain"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
)

// maxSetUps limits the volumes of a pod that are set up at the same time. A pod can have thousands, and the
// requests for their claims share a rate with the statuses of all pods.
const maxSetUps = 32

// podVolumes are the volumes of one pod. It is dropped when the pod is unmounted; after a restart Mount
// builds it again.
type podVolumes struct {
	pod     *v1.Pod // the latest version
	volumes map[string]*mountState
	// unmounting is done when the pod is to be unmounted: then no operation is started.
	unmounting context.Context
	cancel     context.CancelFunc
	// setUps has a token for each volume that is being set up.
	setUps chan struct{}
	// subPaths has those whose file system does not answer.
	subPaths contain.Calls
}

// maxHungSubPaths limits the subPaths of a pod whose file system does not answer. A pod chooses how many it has, and
// each blocks a thread; other pods are not affected.
const maxHungSubPaths = 8

// acquireSetUp waits until another volume may be set up. The caller calls release.
func (pv *podVolumes) acquireSetUp(ctx context.Context) (release func(), err error) {
	select {
	case pv.setUps <- struct{}{}:
		return func() { <-pv.setUps }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// mountState is the state of one volume of one pod. All fields but lock and retryNow are guarded by
// Volumes.mu.
type mountState struct {
	// lock has a token while no operation runs on the volume.
	lock chan struct{}
	// retryNow wakes a Mount that waits for its back-off.
	retryNow notify.Signal

	mounted       bool
	retrying      bool // by MountInBackground
	mountedVolume mountedVolume
	failures      int

	// healthScheduled: health checks are scheduled. healthKnown: conditions, which may be none, are
	// from the last check.
	healthScheduled, healthKnown bool
	conditions                   []v1.VolumeHealthCondition
}

func newMountState() *mountState {
	s := &mountState{lock: make(chan struct{}, 1), retryNow: notify.New()}
	s.lock <- struct{}{}
	return s
}

// acquire locks the volume.
func (s *mountState) acquire(ctx context.Context) error {
	select {
	case <-s.lock:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *mountState) release() { s.lock <- struct{}{} }

// retryUnmounted retries every volume that is not mounted. Volumes.mu is held.
func (pv *podVolumes) retryUnmounted() {
	for _, state := range pv.volumes {
		if !state.mounted {
			state.retryNow.Notify()
		}
	}
}

// retries is the back-off between attempts to mount a volume.
var retries = backoff.Backoff{First: 500 * time.Millisecond, Longest: 2*time.Minute + 2*time.Second}

// podVolumesOf returns the state of p's volumes, creates it if needed, and stores p as the latest pod.
func (v *Volumes) podVolumesOf(p *v1.Pod) *podVolumes {
	v.mu.Lock()
	defer v.mu.Unlock()
	pv := v.pods[p.UID]
	if pv == nil {
		pv = &podVolumes{volumes: map[string]*mountState{}, setUps: make(chan struct{}, maxSetUps), subPaths: contain.Calls{Limit: maxHungSubPaths}}
		pv.unmounting, pv.cancel = context.WithCancel(context.Background())
		v.pods[p.UID] = pv
		if v.stopped {
			pv.cancel()
		}
	}
	pv.pod = p
	return pv
}

var errUnmounting = errors.New("the pod is being unmounted")

// unmounting reports whether the pod's volumes are unmounted or being unmounted.
func (v *Volumes) unmounting(uid types.UID) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	pv := v.pods[uid]
	return pv == nil || pv.unmounting.Err() != nil
}

// usedVolumes lists the volumes that containers of p mount; others are not mounted.
func usedVolumes(p *v1.Pod) []*v1.Volume {
	used := map[string]bool{}
	for c := range pod.Containers(p) {
		for _, m := range c.VolumeMounts {
			used[m.Name] = true
		}
		for _, d := range c.VolumeDevices {
			used[d.Name] = true
		}
	}
	volumes := make([]*v1.Volume, 0, len(used))
	for i := range p.Spec.Volumes {
		if vol := &p.Spec.Volumes[i]; used[vol.Name] {
			volumes = append(volumes, vol)
		}
	}
	return volumes
}

func findVolume(p *v1.Pod, name string) *v1.Volume {
	for i := range p.Spec.Volumes {
		if p.Spec.Volumes[i].Name == name {
			return &p.Spec.Volumes[i]
		}
	}
	return nil
}
