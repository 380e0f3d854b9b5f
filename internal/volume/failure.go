package volume

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/plugin"
)

// Reasons of events, as in the reference kubelet.
const (
	reasonMount   = "FailedMount"
	reasonUnmount = "FailedUnMount"
	reasonMap     = "FailedMapVolume"
	reasonExpand  = "VolumeResizeFailed"
)

// failure is a failed operation with the message of the reference kubelet.
type failure struct {
	reason string
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// failed is the failure of an operation on a volume.
func failed(reason, step, volume string, err error) error {
	return &failure{reason, fmt.Errorf("%s failed for volume %q : %w", step, volume, err)}
}

// setUpError is the failure of the operation that every volume has.
func setUpError(name string, err error) error {
	return failed(reasonMount, "MountVolume.SetUp", name, err)
}

// initError is the failure to find the volume's device.
func initError(s plugin.Spec, err error) error {
	if s.Block() {
		return failed(reasonMap, "MapVolume.NewBlockVolumeMapper initialization", s.Name(), err)
	}
	return failed(reasonMount, "MountVolume.NewMounter initialization", s.Name(), err)
}

// resolveFailure is the failure to read the claim or PersistentVolume.
func resolveFailure(name string, err error) error {
	return &failure{reasonMount, resolveError{name, err}}
}

// resolveError has the message of the reference kubelet.
type resolveError struct {
	volume string
	error
}

func (e resolveError) Unwrap() error { return e.error }

func (e resolveError) Error() string {
	return fmt.Sprintf("Unable to attach or mount volumes: unmounted volumes=[%[1]s], unattached volumes=[], failed to process volumes=[%[1]s]: %[2]v", e.volume, e.error)
}

// recordMissing records an event with the volumes that are not mounted at the timeout.
func (v *Volumes) recordMissing(pv *podVolumes, missing map[string]error, cause error) {
	names := slices.Sorted(maps.Keys(missing))
	v.mu.Lock()
	p := pv.pod
	v.mu.Unlock()
	v.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, reasonMount,
		"Unable to attach or mount volumes: unmounted volumes=%v, unattached volumes=%v, failed to process volumes=[]: %v", names, unattached(missing), cause)
}

// unattached are the missing volumes that are not attached.
func unattached(missing map[string]error) []string {
	names := slices.Sorted(maps.Keys(missing))
	return slices.DeleteFunc(names, func(name string) bool { return !errors.Is(missing[name], errWaiting) })
}

// recordHanging records events for the volumes whose first attempt has not returned. They may hang in
// the kernel, which returns no error.
func (v *Volumes) recordHanging(pv *podVolumes, missing map[string]error) {
	v.mu.Lock()
	p := pv.pod
	v.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if errors.Is(missing[name], errPending) {
			v.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, reasonMount,
				"MountVolume.SetUp for volume %q has not come back after %v: its file system, server or driver does not answer", name, v.cfg.HangTimeout)
		}
	}
}

// recordHungUnmount records that the unmount of a pod's volumes has not returned.
func (v *Volumes) recordHungUnmount(uid types.UID, pv *podVolumes) {
	v.deps.Log.Warn("unmount of volumes hangs", "podUID", uid, "after", v.cfg.HangTimeout)
	if pv == nil { // an earlier agent mounted them
		return
	}
	v.mu.Lock()
	p := pv.pod
	v.mu.Unlock()
	v.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, reasonUnmount,
		"UnmountVolume.TearDown has not come back after %v: a volume's file system, server or driver does not answer", v.cfg.HangTimeout)
}

// errWaiting marks a wait that causes no event before the timeout.
var errWaiting = errors.New("wait")

func waiting(err error) error { return &failure{"", waitingError{err}} }

type waitingError struct{ error }

func (e waitingError) Unwrap() []error { return []error{e.error, errWaiting} }

// recordFailure records an event of the pod.
func (v *Volumes) recordFailure(pv *podVolumes, err error) {
	v.mu.Lock()
	p := pv.pod
	v.mu.Unlock()
	reason := reasonMount
	var f *failure
	if errors.As(err, &f) {
		reason = f.reason
	}
	if reason == "" {
		return
	}
	v.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, reason, "%s", err.Error())
}

// reportGroupChange returns a function that records the progress of a slow change to the pod's
// fsGroup.
func (v *Volumes) reportGroupChange(p *v1.Pod) func(message string) {
	return func(message string) {
		v.deps.Log.Warn("volumes: change of ownership takes long", pod.RefOf(p).Attr(), "progress", message)
		v.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, "VolumePermissionChangeInProgress", "%s", message)
	}
}
