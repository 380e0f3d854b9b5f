package eviction

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/pod"
)

// Names that evictions for a pod's own limits are counted under.
const (
	emptyDirLimit  = "emptydirfs.limit"
	podLimit       = "ephemeralpodfs.limit"
	containerLimit = "ephemeralcontainerfs.limit"
)

// excess is a limit on local storage that a pod has exceeded.
type excess struct{ counted, message string }

// bounded reports whether the pod has a limit on local storage that somebody must watch.
// The kernel watches volumes in memory.
func bounded(p *v1.Pod) bool {
	for i := range p.Spec.Volumes {
		if sizeLimit(&p.Spec.Volumes[i]) != nil {
			return true
		}
	}
	for c, kind := range pod.Containers(p) {
		if kind != pod.Ephemeral && !c.Resources.Limits.StorageEphemeral().IsZero() {
			return true
		}
	}
	return false
}

func sizeLimit(v *v1.Volume) *resource.Quantity {
	if v.EmptyDir == nil || v.EmptyDir.Medium == v1.StorageMediumMemory {
		return nil
	}
	if limit := v.EmptyDir.SizeLimit; limit != nil && limit.Sign() > 0 {
		return limit
	}
	return nil
}

// exceeded finds the first limit that the pod exceeds: of a volume, of the pod, of a
// container.
func exceeded(p *v1.Pod, used *statsapi.PodStats, l Layout) *excess {
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		limit := sizeLimit(v)
		for j := range used.VolumeStats {
			if s := &used.VolumeStats[j]; limit != nil && s.Name == v.Name && value(s.UsedBytes) > limit.Value() {
				return &excess{emptyDirLimit, fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, limit.String())}
			}
		}
	}
	limits := resourcehelper.PodLimits(p, resourcehelper.PodResourcesOptions{})
	if limit, ok := limits[v1.ResourceEphemeralStorage]; ok && used.EphemeralStorage != nil && value(used.EphemeralStorage.UsedBytes) > limit.Value() {
		return &excess{podLimit, fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", limit.String())}
	}
	return exceededByContainer(p, used, l)
}

func exceededByContainer(p *v1.Pod, used *statsapi.PodStats, l Layout) *excess {
	for i := range used.Containers {
		c := &used.Containers[i]
		spec := pod.FindContainer(p, c.Name)
		kind, _ := pod.KindOf(p, c.Name)
		if spec == nil || kind == pod.Ephemeral || kind == pod.Init && !pod.IsSidecar(spec) {
			continue
		}
		var sum stored
		sum.add(c.Logs)
		if !l.OwnImageFs { // else what it writes is not on the disk that is shared out
			sum.add(c.Rootfs)
		}
		if limit := spec.Resources.Limits.StorageEphemeral(); !limit.IsZero() && sum.bytes > limit.Value() {
			return &excess{containerLimit, fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", c.Name, limit.String())}
		}
	}
	return nil
}
