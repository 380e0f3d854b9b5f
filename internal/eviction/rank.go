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

// usages are what pods were measured to use, by UID.
type usages map[types.UID]*statsapi.PodStats

func usagesOf(pods []statsapi.PodStats) usages {
	all := usages{}
	for i := range pods {
		all[types.UID(pods[i].PodRef.UID)] = &pods[i]
	}
	return all
}

// candidate is a pod with all that its place in the order depends on.
type candidate struct {
	pod      *v1.Pod
	unknown  bool // nobody could measure it: it may be what uses up the node
	over     bool // it uses more than it asked for
	priority int32
	excess   int64 // how much more; negative for less
}

// rank orders pods by who should go first for a signal's resource: those that use more
// than they asked for, then the less important, then those with the greatest excess.
func rank(pods []*v1.Pod, used usages, s Signal, l Layout) []*v1.Pod {
	all := make([]candidate, len(pods))
	for i, p := range pods {
		all[i] = candidateOf(p, used[p.UID], s, l)
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		if s == PIDAvailable { // they cannot be asked for, so importance alone comes first
			return cmp.Or(cmp.Compare(a.priority, b.priority), first(a.unknown, b.unknown), cmp.Compare(b.excess, a.excess))
		}
		return cmp.Or(first(a.unknown, b.unknown), first(a.over, b.over), cmp.Compare(a.priority, b.priority), cmp.Compare(b.excess, a.excess))
	})
	ranked := make([]*v1.Pod, len(all))
	for i := range all {
		ranked[i] = all[i].pod
	}
	return ranked
}

// first puts true before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func candidateOf(p *v1.Pod, used *statsapi.PodStats, s Signal, l Layout) candidate {
	c := candidate{pod: p, unknown: used == nil, priority: corev1.PodPriority(p)}
	if used == nil {
		return c
	}
	switch traits[s].resource {
	case v1.ResourceMemory:
		c.excess = workingSet(used.Memory) - requested(p, v1.ResourceMemory)
	case v1.ResourceEphemeralStorage:
		c.excess = onDisk(p, used, l.parts(s)).bytes - requested(p, v1.ResourceEphemeralStorage)
	case resourceInodes: // nobody can ask for them
		c.excess = onDisk(p, used, l.parts(s)).inodes
	case resourcePIDs:
		if used.ProcessStats != nil {
			c.excess = value(used.ProcessStats.ProcessCount)
		}
	}
	c.over = c.excess > 0
	return c
}

// requested is how much the pod asked for, with what running it costs besides if it asked.
func requested(p *v1.Pod, name v1.ResourceName) int64 {
	asked := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{ExcludeOverhead: true})[name]
	if overhead, ok := p.Spec.Overhead[name]; ok && !asked.IsZero() {
		asked.Add(overhead)
	}
	return asked.Value()
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

// stored is what files take.
type stored struct{ bytes, inodes int64 }

func (s *stored) add(fs *statsapi.FsStats) {
	if fs != nil {
		s.bytes += value(fs.UsedBytes)
		s.inodes += value(fs.InodesUsed)
	}
}

// onDisk sums up the given parts of a pod.
func onDisk(p *v1.Pod, used *statsapi.PodStats, of []part) stored {
	var sum stored
	for i := range used.Containers {
		c := &used.Containers[i]
		if slices.Contains(of, writable) {
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
