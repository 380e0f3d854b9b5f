package eviction

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/pod"
)

// podUsage is the measured usage of pods, by UID.
type podUsage map[types.UID]*statsapi.PodStats

func indexByUID(pods []statsapi.PodStats) podUsage {
	all := podUsage{}
	for i := range pods {
		all[types.UID(pods[i].PodRef.UID)] = &pods[i]
	}
	return all
}

// candidate is a pod with everything that decides its rank.
type candidate struct {
	pod         *v1.Pod
	unmeasured  bool // it may be the pod that uses up the node
	overRequest bool // it uses more than it requests
	priority    int32
	excess      int64 // how much more; negative for less
}

// rank orders pods by which to evict first for a signal's resource: those that use more than
// they request, then those of lower priority, then those with the greatest excess.
func rank(pods []*v1.Pod, used podUsage, s Signal, l Layout) []*v1.Pod {
	all := make([]candidate, len(pods))
	for i, p := range pods {
		all[i] = candidateOf(p, used[p.UID], s, l)
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		if s == PIDAvailable { // cannot be requested, so priority comes first
			return cmp.Or(cmp.Compare(a.priority, b.priority), trueFirst(a.unmeasured, b.unmeasured), cmp.Compare(b.excess, a.excess))
		}
		return cmp.Or(trueFirst(a.unmeasured, b.unmeasured), trueFirst(a.overRequest, b.overRequest), cmp.Compare(a.priority, b.priority), cmp.Compare(b.excess, a.excess))
	})
	ranked := make([]*v1.Pod, len(all))
	for i := range all {
		ranked[i] = all[i].pod
	}
	return ranked
}

// trueFirst orders true before false.
func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func candidateOf(p *v1.Pod, used *statsapi.PodStats, s Signal, l Layout) candidate {
	c := candidate{pod: p, unmeasured: used == nil, priority: corev1.PodPriority(p)}
	if used == nil {
		return c
	}
	switch signalInfos[s].resource {
	case v1.ResourceMemory:
		c.excess = workingSet(used.Memory) - requested(p, v1.ResourceMemory)
	case v1.ResourceEphemeralStorage:
		c.excess = sumDiskUsage(p, used, l.storageParts(s)).bytes - requested(p, v1.ResourceEphemeralStorage)
	case resourceInodes: // cannot be requested
		c.excess = sumDiskUsage(p, used, l.storageParts(s)).inodes
	case resourcePIDs:
		if used.ProcessStats != nil {
			c.excess = value(used.ProcessStats.ProcessCount)
		}
	}
	c.overRequest = c.excess > 0
	return c
}

// requested is the pod's request, plus its overhead if it has one.
func requested(p *v1.Pod, name v1.ResourceName) int64 {
	request := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{ExcludeOverhead: true})[name]
	if overhead, ok := p.Spec.Overhead[name]; ok && !request.IsZero() {
		request.Add(overhead)
	}
	return request.Value()
}

func workingSet(m *statsapi.MemoryStats) int64 {
	if m == nil {
		return 0
	}
	return value(m.WorkingSetBytes)
}

func value(n *uint64) int64 {
	if n == nil {
		return 0
	}
	return int64(*n)
}

// diskUsage is what files use.
type diskUsage struct{ bytes, inodes int64 }

func (s *diskUsage) add(fs *statsapi.FsStats) {
	if fs != nil {
		s.bytes += value(fs.UsedBytes)
		s.inodes += value(fs.InodesUsed)
	}
}

// sumDiskUsage sums up the given parts of a pod.
func sumDiskUsage(p *v1.Pod, used *statsapi.PodStats, of []storagePart) diskUsage {
	var sum diskUsage
	for i := range used.Containers {
		c := &used.Containers[i]
		if slices.Contains(of, writableLayer) {
			sum.add(c.Rootfs)
		}
		if slices.Contains(of, logs) {
			sum.add(c.Logs)
		}
	}
	if !slices.Contains(of, volumes) {
		return sum
	}
	for i := range used.VolumeStats {
		v := &used.VolumeStats[i]
		at := slices.IndexFunc(p.Spec.Volumes, func(spec v1.Volume) bool { return spec.Name == v.Name })
		if at >= 0 && pod.VolumeOnNodeDisk(&p.Spec.Volumes[at]) {
			sum.add(&v.FsStats)
		}
	}
	return sum
}
