package volume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/volume/plugin"
)

// Mounted is one volume, ready to be mounted into containers.
type Mounted struct {
	// HostPath is a directory or file, for a raw block volume a link to the device.
	HostPath       string
	ReadOnly       bool
	SELinuxRelabel bool
	// Block volumes are handed over as devices.
	Block bool
	// Image volumes are nowhere on the node: the runtime mounts them.
	Image bool
	// Group is one that the volume's processes must be in, nil where none is asked for.
	Group *int64
}

// MountError says which volumes are missing and why.
type MountError struct {
	// Volumes maps the name of each missing volume to what its last try met.
	Volumes map[string]error
	// Cause is why no further try was made: the deadline, or the pod's end.
	Cause error
}

func (e *MountError) Error() string {
	names := slices.Sorted(maps.Keys(e.Volumes))
	reasons := make([]string, 0, len(names))
	for _, name := range names {
		reasons = append(reasons, e.Volumes[name].Error())
	}
	return fmt.Sprintf("unmounted volumes=[%s]: %s: %v", strings.Join(names, " "), strings.Join(reasons, "; "), e.Cause)
}

func (e *MountError) Unwrap() []error {
	return append(slices.Collect(maps.Values(e.Volumes)), e.Cause)
}

// errNotTried stands for a volume whose first try has not come back.
var errNotTried = errors.New("still being set up")

// Mount brings up all volumes that p's containers use, each on its own, and returns them
// by name. A volume that cannot be brought up is tried again when what it lacks appears,
// and at growing intervals; an event says why the pod waits. Mount ends when all are up,
// or with a *MountError when ctx, the configured time or the pod ends, an *AttachLimitError
// where the time has shown that the node can take no more volumes.
// Mounting what is mounted already changes nothing.
func (v *Volumes) Mount(ctx context.Context, p *v1.Pod) (map[string]Mounted, error) {
	pv := v.known(p)
	mounted, names := v.split(pv, wanted(p))
	if len(names) == 0 {
		return mounted, nil
	}
	callers := ctx
	ctx, cancel := context.WithTimeout(ctx, v.cfg.MountTimeout)
	defer cancel()
	defer context.AfterFunc(pv.gone, cancel)()

	done := make(chan outcome, len(names))
	missing := map[string]error{}
	for _, name := range names {
		missing[name] = setUpError(name, errNotTried)
		// Not owned by this call: one hung in the kernel must not hold up the pod's end.
		v.begin(func() { v.mountUntil(ctx, pv, name, done) })
	}
	hangs := v.deps.Clock.NewTimer(v.cfg.HangTimeout)
	defer hangs.Stop()
	for len(missing) > 0 {
		select {
		case <-hangs.C():
			v.tellHanging(pv, missing)
		case o := <-done:
			if o.err != nil {
				missing[o.name] = o.err
				continue
			}
			delete(missing, o.name)
			mounted[o.name] = v.toMounted(o.up)
		case <-ctx.Done():
			if callers.Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) { // our patience, not the caller's
				if err := v.attachLimit(callers, pv, missing); err != nil {
					return nil, err
				}
				v.tellMissing(pv, missing, ctx.Err())
			}
			return nil, &MountError{Volumes: missing, Cause: ctx.Err()}
		}
	}
	return mounted, nil
}

// outcome is what became of one try to bring up a volume.
type outcome struct {
	name string
	up   up
	err  error
}

// mountUntil tries until the volume is up or ctx is done, and reports each try.
func (v *Volumes) mountUntil(ctx context.Context, pv *podVolumes, name string, done chan<- outcome) {
	state := v.stateOf(pv, name)
	asked := v.deps.Clock.Now()
	for {
		select {
		case <-state.hint: // about what the coming try will see for itself
		default:
		}
		got, err := v.setUp(ctx, pv, name, state)
		if ctx.Err() != nil && err != nil {
			return
		}
		select {
		case done <- outcome{name, got, err}:
		case <-ctx.Done():
			return
		}
		if err == nil {
			v.deps.Meters.Mounted.Took(got.qualifiedKind(), v.deps.Clock.Since(asked))
			return
		}
		v.tellFailure(pv, err)
		if !v.waitForRetry(ctx, state, err) {
			return
		}
	}
}

// waitForRetry returns true when the volume is worth another try.
func (v *Volumes) waitForRetry(ctx context.Context, state *mountState, err error) bool {
	v.mu.Lock()
	wait := retries.After(state.failures)
	v.mu.Unlock()
	if longest, ok := plugin.MaxRetryDelay(err); ok {
		wait = min(wait, longest)
	}
	timer := v.deps.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-state.hint:
		return true
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// setUp makes one try, alone on this volume, and notes the outcome.
func (v *Volumes) setUp(ctx context.Context, pv *podVolumes, name string, state *mountState) (up, error) {
	if err := state.take(ctx); err != nil {
		return up{}, setUpError(name, err)
	}
	defer state.release()
	if pv.gone.Err() != nil {
		return up{}, setUpError(name, pv.gone.Err())
	}
	v.mu.Lock()
	p := pv.pod
	v.mu.Unlock()

	got, err := v.bringUp(ctx, p, name)

	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.watchLocked(pv, name, state)
	if err != nil {
		state.failures++
		return up{}, err
	}
	state.mounted, state.up, state.failures = true, got, 0
	if at := got.result.RefreshAt; !at.IsZero() && pv.gone.Err() == nil {
		v.scheduleLocked(volumeKey{pod: p.UID, volume: name}, at)
	}
	if growing(got) && pv.gone.Err() == nil {
		v.scheduleLocked(volumeKey{pod: p.UID, volume: name, size: true}, v.deps.Clock.Now().Add(v.firstWait(sizePeriod)))
	}
	return got, nil
}

func (v *Volumes) stateOf(pv *podVolumes, name string) *mountState {
	v.mu.Lock()
	defer v.mu.Unlock()
	state := pv.volumes[name]
	if state == nil {
		state = newMountState()
		pv.volumes[name] = state
	}
	return state
}

func (v *Volumes) toMounted(u up) Mounted {
	return Mounted{
		HostPath:       u.result.HostPath,
		ReadOnly:       u.result.ReadOnly,
		SELinuxRelabel: u.result.SELinuxRelabel && v.cfg.SELinux,
		Block:          u.spec.Block(),
		Image:          u.result.Image,
		Group:          volumeGroup(u.spec.PV),
	}
}

// split tells volumes that are up, whose content Run keeps fresh, from those to bring up.
func (v *Volumes) split(pv *podVolumes, names []string) (mounted map[string]Mounted, missing []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	mounted = make(map[string]Mounted, len(names))
	for _, name := range names {
		if state := pv.volumes[name]; state != nil && state.mounted {
			mounted[name] = v.toMounted(state.up)
		} else {
			missing = append(missing, name)
		}
	}
	return mounted, missing
}

// MountedVolumes returns what is mounted of a pod, by volume name.
func (v *Volumes) MountedVolumes(uid types.UID) map[string]Mounted {
	v.mu.Lock()
	defer v.mu.Unlock()
	mounted := map[string]Mounted{}
	if pv := v.pods[uid]; pv != nil {
		for name, state := range pv.volumes {
			if state.mounted {
				mounted[name] = v.toMounted(state.up)
			}
		}
	}
	return mounted
}
