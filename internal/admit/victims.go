package admit

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

// Victims selects the pods to preempt for the critical pod p: as few guaranteed pods as
// possible, then as few burstable ones, and best-effort ones for what is still missing.
func Victims(p *v1.Pod, others []*v1.Pod, shortages []Shortage) ([]*v1.Pod, error) {
	classes := map[v1.PodQOSClass][]*v1.Pod{}
	for _, o := range others {
		if canPreempt(p, o) {
			classes[pod.QOS(o)] = append(classes[pod.QOS(o)], o)
		}
	}
	bestEffort, burstable, guaranteed := classes[v1.PodQOSBestEffort], classes[v1.PodQOSBurstable], classes[v1.PodQOSGuaranteed]
	all := needOf(shortages)
	if rest := all.without(bestEffort, burstable, guaranteed); len(rest) > 0 {
		return nil, fmt.Errorf("no set of running pods found to reclaim resources: %s", rest)
	}
	// From each class, preempt only what preempting all of the other classes does not free.
	first := all.without(bestEffort, burstable).pick(guaranteed)
	second := all.without(bestEffort, first).pick(burstable)
	third := all.without(second, first).pick(bestEffort)
	return slices.Concat(third, second, first), nil
}

// canPreempt reports whether p may preempt another pod.
func canPreempt(p, other *v1.Pod) bool {
	if pod.IsCritical(p) && !pod.IsCritical(other) {
		return true
	}
	priority, otherPriority := p.Spec.Priority, other.Spec.Priority
	return priority != nil && otherPriority != nil && *priority > *otherPriority
}

// need is the amount of each resource that is still missing.
type need []missing

type missing struct {
	resource v1.ResourceName
	amount   int64
}

func needOf(shortages []Shortage) need {
	var n need
	for _, s := range shortages {
		n = append(n, missing{s.Resource, s.Missing()})
	}
	return n
}

func (n need) String() string {
	text := "["
	for _, m := range n {
		text += fmt.Sprintf("(res: %v, q: %d), ", m.resource, m.amount)
	}
	return text + "]"
}

// without returns what is still missing after these pods have stopped.
func (n need) without(groups ...[]*v1.Pod) need {
	var rest need
	for _, m := range n {
		for _, p := range slices.Concat(groups...) {
			m.amount -= requested(p, m.resource)
		}
		if m.amount > 0 {
			rest = append(rest, m)
		}
	}
	return rest
}

// pick selects pods one by one until nothing is missing: each time the one that frees most of
// what is missing, and of two that free as much, the one that requests less.
func (n need) pick(from []*v1.Pod) []*v1.Pod {
	from = slices.Clone(from)
	var picked []*v1.Pod
	for len(n) > 0 && len(from) > 0 {
		best := 0
		for i := 1; i < len(from); i++ {
			d, least := n.distance(from[i]), n.distance(from[best])
			if d < least || d == least && requestsLess(from[i], from[best]) {
				best = i
			}
		}
		n = n.without(from[best : best+1])
		picked = append(picked, from[best])
		from = slices.Delete(from, best, best+1)
	}
	return picked
}

// distance is the part of the need that the pod does not free, relative to the need, so that
// all resources have the same weight.
func (n need) distance(p *v1.Pod) float64 {
	sum := 0.0
	for _, m := range n {
		if left := float64(m.amount - requested(p, m.resource)); left > 0 {
			part := left / float64(m.amount)
			sum += part * part
		}
	}
	return sum
}

// requestsLess compares memory requests, then CPU requests. It returns true for equal pods.
func requestsLess(a, b *v1.Pod) bool {
	for _, name := range []v1.ResourceName{v1.ResourceMemory, v1.ResourceCPU} {
		if x, y := requested(a, name), requested(b, name); x != y {
			return x < y
		}
	}
	return true
}

// requested is how much of a resource the pod frees when it stops.
func requested(p *v1.Pod, name v1.ResourceName) int64 {
	if name == v1.ResourcePods {
		return 1
	}
	return units(name, resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}))
}
