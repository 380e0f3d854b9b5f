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

// MeasurableVolume is a mounted volume whose usage is part of the pod's stats.
type MeasurableVolume struct {
	Name     string
	HostPath string
	// Local volumes use the node's ephemeral storage.
	Local bool
	// Claim is the name of the PersistentVolumeClaim, "" for none.
	Claim string
	// Driver is the name of the CSI driver, "" for none.
	Driver string
	// Used is the usage from the project quota, false if unknown; nil if there are no quotas.
	Used func() (quota.Usage, bool)
	// Measure is the usage that the plugin reports; nil if it does not.
	Measure func(context.Context) (plugin.Usage, error)
}

// MeasurableVolumes lists the volumes of a pod that have stats, by name. hostPath volumes are not among them,
// nor are raw block volumes of a plugin that does not report usage.
func (v *Volumes) MeasurableVolumes(uid types.UID) []MeasurableVolume {
	v.mu.Lock()
	defer v.mu.Unlock()
	pv := v.pods[uid]
	if pv == nil {
		return nil
	}
	var owned []MeasurableVolume
	for name, state := range pv.volumes {
		spec := findVolume(pv.pod, name)
		if !state.mounted || spec == nil || state.mountedVolume.kind.Name() == hostpath.Name || state.mountedVolume.result.HostPath == "" {
			continue // not mounted, a hostPath, or an image
		}
		o := MeasurableVolume{Name: name, HostPath: state.mountedVolume.result.HostPath, Local: pod.VolumeOnNodeDisk(spec), Driver: driverOf(state.mountedVolume.kind, state.mountedVolume.spec)}
		o.Claim, _ = pod.VolumeClaim(pv.pod, spec)
		if meter, ok := state.mountedVolume.kind.(plugin.UsageReporter); ok {
			r := plugin.Request{Spec: state.mountedVolume.spec, Pod: pv.pod, PodDir: v.podDir(uid)}
			at := state.mountedVolume.result
			o.Measure = func(ctx context.Context) (plugin.Usage, error) { return meter.Measure(ctx, r, at) }
		} else if state.mountedVolume.spec.Block() {
			continue
		}
		if o.Local && v.deps.Quotas != nil {
			o.Used = func() (quota.Usage, bool) { return v.deps.Quotas.Used(o.HostPath) }
		}
		owned = append(owned, o)
	}
	slices.SortFunc(owned, func(a, b MeasurableVolume) int { return strings.Compare(a.Name, b.Name) })
	return owned
}
