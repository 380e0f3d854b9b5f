package volume

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/plugin"
)

// Reasons of events, as the reference kubelet gives them.
const (
	reasonMount  = "FailedMount"
	reasonMap    = "FailedMapVolume"
	reasonExpand = "VolumeResizeFailed"
)

// failure is a failed step worded as users of the reference kubelet know it.
type failure struct {
	reason string
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// failed says which step failed on which volume.
func failed(reason, step, volume string, err error) error {
	return &failure{reason, fmt.Errorf("%s failed for volume %q : %w", step, volume, err)}
}

// setUpError is the failure of the one step that every volume has.
func setUpError(name string, err error) error {
	return failed(reasonMount, "MountVolume.SetUp", name, err)
}

// unusable says that a volume's description leads nowhere.
func unusable(s plugin.Spec, err error) error {
	if s.Block() {
		return failed(reasonMap, "MapVolume.NewBlockVolumeMapper initialization", s.Name(), err)
	}
	return failed(reasonMount, "MountVolume.NewMounter initialization", s.Name(), err)
}

// unresolved says that the volume behind a claim could not be found.
func unresolved(name string, err error) error {
	return &failure{reasonMount, unresolvedError{name, err}}
}

// unresolvedError is worded as users know it.
type unresolvedError struct {
	volume string
	error
}

func (e unresolvedError) Unwrap() error { return e.error }

func (e unresolvedError) Error() string {
	return fmt.Sprintf("Unable to attach or mount volumes: unmounted volumes=[%[1]s], unattached volumes=[], failed to process volumes=[%[1]s]: %[2]v", e.volume, e.error)
}

// tellMissing says at the end of all patience which volumes the pod still lacks.
func (v *Volumes) tellMissing(pv *podVolumes, missing map[string]error, cause error) {
	names := slices.Sorted(maps.Keys(missing))
	v.mu.Lock()
	p := pv.pod
	v.mu.Unlock()
	v.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, reasonMount,
		"Unable to attach or mount volumes: unmounted volumes=%v, unattached volumes=%v, failed to process volumes=[]: %v", names, unattached(missing), cause)
}

// unattached are those of the missing volumes that nobody has attached.
func unattached(missing map[string]error) []string {
	names := slices.Sorted(maps.Keys(missing))
	return slices.DeleteFunc(names, func(name string) bool { return !errors.Is(missing[name], errSilent) })
}

// tellHanging says which volumes have not come back from their first try. Each may hang in
// the kernel, where nothing ends it and no error ever tells.
func (v *Volumes) tellHanging(pv *podVolumes, missing map[string]error) {
	v.mu.Lock()
	p := pv.pod
	v.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if errors.Is(missing[name], errNotTried) {
			v.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, reasonMount,
				"MountVolume.SetUp for volume %q has not come back after %v: its file system, server or driver does not answer", name, v.cfg.HangTimeout)
		}
	}
}

// errSilent marks a wait that is told to nobody until patience ends.
var errSilent = errors.New("wait")

func silent(err error) error { return &failure{"", silentError{err}} }

type silentError struct{ error }

func (e silentError) Unwrap() []error { return []error{e.error, errSilent} }

// tellFailure makes the reason visible to the pod's owner.
func (v *Volumes) tellFailure(pv *podVolumes, err error) {
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
