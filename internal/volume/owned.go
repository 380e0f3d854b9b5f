package volume

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/hostpath"
	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/quota"
)

// Owned is a mounted volume whose content is the pod's: how much there is of it says
// something about the pod.
type Owned struct {
	Name     string
	HostPath string
	// Local ones lie on the node's disk and go with the pod.
	Local bool
	// Claim is the PersistentVolumeClaim behind it, if there is one.
	Claim string
	// Driver is the CSI driver that serves it, if one does.
	Driver string
	// Used tells what the kernel counts in it, false for nothing; nil where nothing is counted.
	Used func() (quota.Usage, bool)
	// Measure asks whoever knows better than the file system; nil where nobody does.
	Measure func(context.Context) (plugin.Usage, error)
}

// OwnedVolumes lists a pod's own volumes by name. A directory of the host is not among them:
// what is in it is the host's. Nor is a device of which nobody can say how full it is.
func (v *Volumes) OwnedVolumes(uid types.UID) []Owned {
	v.mu.Lock()
	defer v.mu.Unlock()
	pv := v.pods[uid]
	if pv == nil {
		return nil
	}
	var owned []Owned
	for name, state := range pv.volumes {
		spec := findVolume(pv.pod, name)
		if !state.mounted || spec == nil || state.up.kind.Name() == hostpath.Name || state.up.result.HostPath == "" {
			continue // not up, the host's own, or an image, which is nowhere
		}
		o := Owned{Name: name, HostPath: state.up.result.HostPath, Local: pod.VolumeOnNodeDisk(spec), Driver: driverOf(state.up.kind, state.up.spec)}
		o.Claim, _ = pod.VolumeClaim(pv.pod, spec)
		if meter, ok := state.up.kind.(plugin.UsageReporter); ok {
			r := plugin.Request{Spec: state.up.spec, Pod: pv.pod, PodDir: v.podDir(uid)}
			at := state.up.result
			o.Measure = func(ctx context.Context) (plugin.Usage, error) { return meter.Measure(ctx, r, at) }
		} else if state.up.spec.Block() {
			continue
		}
		if o.Local && v.deps.Quotas != nil {
			o.Used = func() (quota.Usage, bool) { return v.deps.Quotas.Used(o.HostPath) }
		}
		owned = append(owned, o)
	}
	slices.SortFunc(owned, func(a, b Owned) int { return strings.Compare(a.Name, b.Name) })
	return owned
}
