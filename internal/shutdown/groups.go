package shutdown

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Group is how long pods of a priority, and of those above it up to the next group's, are
// given to end.
type Group struct {
	Priority int32
	Grace    time.Duration
}

// systemCritical is the least priority of pods that a cluster needs.
const systemCritical = 2000000000

// TwoGroups is what the periods for all pods and, of that, for critical ones amount to.
func TwoGroups(all, critical time.Duration) []Group {
	if all <= 0 || critical > all {
		return nil
	}
	return []Group{{0, (all - critical).Truncate(time.Second)}, {systemCritical, critical.Truncate(time.Second)}}
}

// inOrder sorts groups from the first to end to the last.
func inOrder(groups []Group) []Group {
	return slices.SortedFunc(slices.Values(groups), func(a, b Group) int { return cmp.Compare(a.Priority, b.Priority) })
}

// total is how long all groups take at most.
func total(groups []Group) (sum time.Duration) {
	for _, g := range groups {
		sum += g.Grace
	}
	return sum
}

// assign deals the pods out to the groups. Those below the lowest go with it.
func assign(groups []Group, pods []*v1.Pod) [][]*v1.Pod {
	dealt := make([][]*v1.Pod, len(groups))
	for _, p := range pods {
		var priority int32
		if p.Spec.Priority != nil {
			priority = *p.Spec.Priority
		}
		at := 0
		for i, g := range groups {
			if g.Priority <= priority {
				at = i
			}
		}
		dealt[at] = append(dealt[at], p)
	}
	return dealt
}

// graceOf is how long a pod gets: what it asks for, but no more than its group has.
func graceOf(p *v1.Pod, g Group) int64 {
	grace := int64(g.Grace / time.Second)
	if asked := p.Spec.TerminationGracePeriodSeconds; asked != nil {
		grace = min(grace, *asked)
	}
	return grace
}
