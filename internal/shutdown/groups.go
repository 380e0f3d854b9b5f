package shutdown

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Group is the shutdown grace period of pods with at least this priority, and less than that
// of the next group.
type Group struct {
	Priority int32
	Grace    time.Duration
}

// systemCritical is the lowest priority of system-critical pods.
const systemCritical = 2000000000

// groupsByCriticality converts shutdownGracePeriod and shutdownGracePeriodCriticalPods, which
// is a part of it, to groups. It returns nil if they disable graceful shutdown.
func groupsByCriticality(all, critical time.Duration) []Group {
	if all <= 0 || critical > all {
		return nil
	}
	return []Group{{0, (all - critical).Truncate(time.Second)}, {systemCritical, critical.Truncate(time.Second)}}
}

// sortGroups returns the groups in the order of their termination.
func sortGroups(groups []Group) []Group {
	return slices.SortedFunc(slices.Values(groups), func(a, b Group) int { return cmp.Compare(a.Priority, b.Priority) })
}

// totalGrace is the sum of all grace periods.
func totalGrace(groups []Group) (sum time.Duration) {
	for _, g := range groups {
		sum += g.Grace
	}
	return sum
}

// groupPods returns the pods of each group. Pods with a priority below the first group are in
// the first.
func groupPods(groups []Group, pods []*v1.Pod) [][]*v1.Pod {
	grouped := make([][]*v1.Pod, len(groups))
	for _, p := range pods {
		var priority int32
		if p.Spec.Priority != nil {
			priority = *p.Spec.Priority
		}
		index := 0
		for i, g := range groups {
			if g.Priority <= priority {
				index = i
			}
		}
		grouped[index] = append(grouped[index], p)
	}
	return grouped
}

// gracePeriod is the pod's own grace period, but at most that of its group, in seconds.
func gracePeriod(p *v1.Pod, g Group) int64 {
	grace := int64(g.Grace / time.Second)
	if own := p.Spec.TerminationGracePeriodSeconds; own != nil {
		grace = min(grace, *own)
	}
	return grace
}
