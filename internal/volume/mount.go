package volume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/contain"
	"swiftlet/internal/pod"
	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/why"
)

// Mounted is one volume, ready for containers.
type Mounted struct {
	// HostPath is a directory or file, for a raw block volume a link to the device.
	HostPath       string
	ReadOnly       bool
	SELinuxRelabel bool
	// Block is set for a raw block volume.
	Block bool
	// Image volumes have no path on the node: the runtime mounts them.
	Image bool
	// Group is a supplemental group for the pod's processes, nil for none.
	Group *int64
}

// MountError lists the volumes that are not mounted.
type MountError struct {
	// Volumes maps the name of each volume to its last error.
	Volumes map[string]error
	// Cause is why there is no further attempt: the timeout, or the end of the pod.
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

// errPending is the error of a volume whose first attempt has not returned.
var errPending = errors.New("still being set up")

// Mount mounts all volumes that p's containers use, concurrently, and returns them by name. A failed
// volume is retried with back-off, and at once when an object that it needs appears; events record
// the failures. Mount returns when all are mounted, or a *MountError when ctx is done, at the
// configured timeout or when the pod is unmounted, or an *AttachLimitError if at the timeout the node
// has reached its attach limit. It is idempotent.
func (v *Volumes) Mount(ctx context.Context, p *v1.Pod) (map[string]Mounted, error) {
	pv := v.podVolumesOf(p)
	mounted, names := v.splitMounted(pv, usedVolumes(p))
	if len(names) == 0 {
		return mounted, nil
	}
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, v.cfg.MountTimeout)
	defer cancel()
	defer context.AfterFunc(pv.unmounting, cancel)()

	done := make(chan outcome, len(names))
	missing := map[string]error{}
	for _, name := range names {
		missing[name] = setUpError(name, errPending)
		// In the background: one that hangs in the kernel must not delay the end of the pod.
		v.runAsync(func() { v.mountWithRetry(ctx, pv, name, done) })
	}
	hangTimer := v.deps.Clock.NewTimer(v.cfg.HangTimeout)
	defer hangTimer.Stop()
	for len(missing) > 0 {
		select {
		case <-hangTimer.C():
			v.recordHanging(pv, missing)
		case o := <-done:
			if o.err != nil {
				missing[o.name] = o.err
				continue
			}
			delete(missing, o.name)
			mounted[o.name] = v.toMounted(o.mountedVolume)
		case <-ctx.Done():
			if parent.Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) { // our timeout, not the caller's
				if err := v.attachLimit(parent, pv, missing); err != nil {
					return nil, err
				}
				v.recordMissing(pv, missing, ctx.Err())
			}
			return nil, &MountError{Volumes: missing, Cause: ctx.Err()}
		}
	}
	return mounted, nil
}

// outcome is the result of one attempt to mount a volume.
type outcome struct {
	name          string
	mountedVolume mountedVolume
	err           error
}

// mountWithRetry retries until the volume is mounted or ctx is done, and sends the outcome of each
// attempt.
func (v *Volumes) mountWithRetry(ctx context.Context, pv *podVolumes, name string, done chan<- outcome) {
	state := v.stateOf(pv, name)
	requested := v.deps.Clock.Now()
	for {
		select {
		case <-state.retryNow: // from before this attempt
		default:
		}
		got, err := v.trySetUp(ctx, pv, name, state)
		if ctx.Err() != nil && err != nil {
			return
		}
		select {
		case done <- outcome{name, got, err}:
		case <-ctx.Done():
			return
		}
		if err == nil {
			v.deps.Meters.Mounted.Took(got.qualifiedPlugin(), v.deps.Clock.Since(requested))
			return
		}
		v.recordFailure(pv, err)
		if !v.waitForRetry(ctx, pv, name, state, err) {
			return
		}
	}
}

// waitForRetry waits for the back-off or for a hint to retry. It returns false if ctx is done.
func (v *Volumes) waitForRetry(ctx context.Context, pv *podVolumes, name string, state *mountState, err error) bool {
	v.mu.Lock()
	wait, uid := retries.After(state.failures), pv.pod.UID
	v.mu.Unlock()
	if longest, ok := plugin.MaxRetryDelay(err); ok {
		wait = min(wait, longest)
	}
	v.deps.Why.Delay(uid, why.Step{Kind: why.Volume, Name: name}, v.deps.Clock.Now().Add(wait))
	timer := v.deps.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-state.retryNow:
		return true
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// minRefreshDelay is the shortest time between two refreshes that a plugin requests.
const minRefreshDelay = time.Second

// trySetUp makes one attempt, with the volume locked, and records the outcome.
func (v *Volumes) trySetUp(ctx context.Context, pv *podVolumes, name string, state *mountState) (mountedVolume, error) {
	if err := state.acquire(ctx); err != nil {
		return mountedVolume{}, setUpError(name, err)
	}
	defer state.release()
	release, err := pv.acquireSetUp(ctx)
	if err != nil {
		return mountedVolume{}, setUpError(name, err)
	}
	defer release()
	if pv.unmounting.Err() != nil {
		return mountedVolume{}, setUpError(name, pv.unmounting.Err())
	}
	v.mu.Lock()
	p := pv.pod
	v.mu.Unlock()

	step := why.Step{Kind: why.Volume, Name: name}
	v.deps.Why.Begin(p.UID, step, v.deps.Clock.Now())
	got, err := contain.Value(func() (mountedVolume, error) { return v.setUpVolume(ctx, p, name) })
	v.deps.Panics.Report("volume", err, pod.RefOf(p).Attr(), "volume", name)

	if err == nil || ctx.Err() == nil { // else it was canceled, and keeps the error of the attempt before
		v.deps.Why.End(p.UID, step, err, v.deps.Clock.Now(), time.Time{})
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.scheduleHealthLocked(pv, name, state)
	if err != nil {
		state.failures++
		return mountedVolume{}, err
	}
	state.mounted, state.mountedVolume, state.failures = true, got, 0
	if at := got.result.RefreshAt; !at.IsZero() && pv.unmounting.Err() == nil {
		// What is to be refreshed at once, such as a token of an API server with another clock, may be so again.
		if earliest := v.deps.Clock.Now().Add(minRefreshDelay); at.Before(earliest) {
			at = earliest
		}
		v.scheduleLocked(volumeKey{pod: p.UID, volume: name}, at)
	}
	if expandable(got) && pv.unmounting.Err() == nil {
		v.scheduleLocked(volumeKey{pod: p.UID, volume: name, size: true}, v.deps.Clock.Now().Add(v.jitteredPeriod(sizeCheckPeriod)))
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

func (v *Volumes) toMounted(u mountedVolume) Mounted {
	return Mounted{
		HostPath:       u.result.HostPath,
		ReadOnly:       u.result.ReadOnly,
		SELinuxRelabel: u.result.SELinuxRelabel && v.cfg.SELinux,
		Block:          u.spec.Block(),
		Image:          u.result.Image,
		Group:          volumeGroup(u.spec.PV),
	}
}

// splitMounted separates mounted volumes, which Run refreshes, from those to mount.
func (v *Volumes) splitMounted(pv *podVolumes, volumes []*v1.Volume) (mounted map[string]Mounted, missing []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	mounted = make(map[string]Mounted, len(volumes))
	for _, vol := range volumes {
		if state := pv.volumes[vol.Name]; state != nil && state.mounted {
			mounted[vol.Name] = v.toMounted(state.mountedVolume)
		} else {
			missing = append(missing, vol.Name)
		}
	}
	return mounted, missing
}

// MountedVolumes are the mounted volumes of a pod by name.
func (v *Volumes) MountedVolumes(uid types.UID) map[string]Mounted {
	v.mu.Lock()
	defer v.mu.Unlock()
	mounted := map[string]Mounted{}
	if pv := v.pods[uid]; pv != nil {
		for name, state := range pv.volumes {
			if state.mounted {
				mounted[name] = v.toMounted(state.mountedVolume)
			}
		}
	}
	return mounted
}
