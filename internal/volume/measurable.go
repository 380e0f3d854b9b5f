package volume

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/hostpath"
	"swiftlet/internal/volume/plugin"
)

// MeasurableVolumes lists the volumes of a pod that have stats, by name. hostPath volumes are not among them,
// nor are raw block volumes of a plugin that does not report usage.
func (v *Volumes) MeasurableVolumes(uid types.UID) []pod.MeasurableVolume {
	v.mu.Lock()
	defer v.mu.Unlock()
	pv := v.pods[uid]
	if pv == nil {
		return nil
	}
	var found []pod.MeasurableVolume
	for i := range pv.pod.Spec.Volumes {
		spec := &pv.pod.Spec.Volumes[i]
		state := pv.volumes[spec.Name]
		if state == nil || !state.mounted || state.mountedVolume.kind.Name() == hostpath.Name || state.mountedVolume.result.HostPath == "" {
			continue // not mounted, a hostPath, or an image
		}
		o := pod.MeasurableVolume{Name: spec.Name, Dir: state.mountedVolume.result.HostPath, Local: pod.VolumeOnNodeDisk(spec), Driver: driverOf(state.mountedVolume.kind, state.mountedVolume.spec)}
		o.Claim, _ = pod.VolumeClaim(pv.pod, spec)
		if meter, ok := state.mountedVolume.kind.(plugin.UsageReporter); ok {
			r := plugin.Request{Spec: state.mountedVolume.spec, Pod: pv.pod, PodDir: v.podDir(uid)}
			at := state.mountedVolume.result
			o.Measure = func(ctx context.Context) (pod.VolumeUsage, error) { return meter.Measure(ctx, r, at) }
		} else if state.mountedVolume.spec.Block() {
			continue
		}
		if o.Local && v.deps.Quotas != nil {
			o.QuotaUsage = func() (bytes, inodes uint64, ok bool) {
				used, ok := v.deps.Quotas.Used(o.Dir)
				return used.Bytes, used.Inodes, ok
			}
		}
		found = append(found, o)
	}
	slices.SortFunc(found, func(a, b pod.MeasurableVolume) int { return strings.Compare(a.Name, b.Name) })
	return found
}
