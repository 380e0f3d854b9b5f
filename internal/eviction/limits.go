package eviction

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/pod"
)

// Metric labels of evictions for a pod's own limits.
const (
	emptyDirLimit  = "emptydirfs.limit"
	podLimit       = "ephemeralpodfs.limit"
	containerLimit = "ephemeralcontainerfs.limit"
)

// violation is a limit on local storage that a pod has exceeded.
type violation struct{ label, message string }

// hasStorageLimit reports whether the pod has a limit on local storage that the Evictor must
// enforce. The kernel enforces those of memory-backed volumes.
func hasStorageLimit(p *v1.Pod) bool {
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

// exceededLimit returns the first limit that the pod exceeds: of a volume, of the pod, of a
// container.
func exceededLimit(p *v1.Pod, used *statsapi.PodStats, l Layout) *violation {
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		limit := sizeLimit(v)
		for j := range used.VolumeStats {
			if s := &used.VolumeStats[j]; limit != nil && s.Name == v.Name && value(s.UsedBytes) > limit.Value() {
				return &violation{emptyDirLimit, fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, limit.String())}
			}
		}
	}
	limits := resourcehelper.PodLimits(p, resourcehelper.PodResourcesOptions{})
	if limit, ok := limits[v1.ResourceEphemeralStorage]; ok && used.EphemeralStorage != nil && value(used.EphemeralStorage.UsedBytes) > limit.Value() {
		return &violation{podLimit, fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", limit.String())}
	}
	return exceededContainerLimit(p, used, l)
}

func exceededContainerLimit(p *v1.Pod, used *statsapi.PodStats, l Layout) *violation {
	for i := range used.Containers {
		c := &used.Containers[i]
		spec := pod.FindContainer(p, c.Name)
		kind, _ := pod.KindOf(p, c.Name)
		if spec == nil || kind == pod.Ephemeral || kind == pod.Init && !pod.IsSidecar(spec) {
			continue
		}
		var sum diskUsage
		sum.add(c.Logs)
		if !l.OwnImageFs { // else the writable layer is not on the node's file system
			sum.add(c.Rootfs)
		}
		if limit := spec.Resources.Limits.StorageEphemeral(); !limit.IsZero() && sum.bytes > limit.Value() {
			return &violation{containerLimit, fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", c.Name, limit.String())}
		}
	}
	return nil
}
