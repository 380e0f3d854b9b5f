package admit

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

// Victims picks the pods that must end for the critical pod p to have what it lacks: as few
// as possible of the guaranteed, then of the burstable ones, and of what is left of the
// need the best-effort ones.
func Victims(p *v1.Pod, others []*v1.Pod, lacking []Shortage) ([]*v1.Pod, error) {
	classes := map[v1.PodQOSClass][]*v1.Pod{}
	for _, o := range others {
		if displaces(p, o) {
			classes[pod.QOS(o)] = append(classes[pod.QOS(o)], o)
		}
	}
	bestEffort, burstable, guaranteed := classes[v1.PodQOSBestEffort], classes[v1.PodQOSBurstable], classes[v1.PodQOSGuaranteed]
	all := needOf(lacking)
	if rest := all.without(bestEffort, burstable, guaranteed); len(rest) > 0 {
		return nil, fmt.Errorf("no set of running pods found to reclaim resources: %s", rest)
	}
	// Each class gives what the others could not, were they to give all.
	first := all.without(bestEffort, burstable).pick(guaranteed)
	second := all.without(bestEffort, first).pick(burstable)
	third := all.without(second, first).pick(bestEffort)
	return slices.Concat(third, second, first), nil
}

// displaces reports whether p may take the place of another pod.
func displaces(p, other *v1.Pod) bool {
	if pod.IsCritical(p) && !pod.IsCritical(other) {
		return true
	}
	mine, its := p.Spec.Priority, other.Spec.Priority
	return mine != nil && its != nil && *mine > *its
}

// need is what is still missing, by resource.
type need []missing

type missing struct {
	resource v1.ResourceName
	amount   int64
}

func needOf(lacking []Shortage) need {
	var n need
	for _, s := range lacking {
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

// without is what is missing still when these pods have ended.
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

// pick takes one pod after the other, each the one that meets most of what is then missing;
// of two that meet as much the one that asks for less.
func (n need) pick(from []*v1.Pod) []*v1.Pod {
	from = slices.Clone(from)
	var picked []*v1.Pod
	for len(n) > 0 && len(from) > 0 {
		best := 0
		for i := 1; i < len(from); i++ {
			d, least := n.distance(from[i]), n.distance(from[best])
			if d < least || d == least && asksLess(from[i], from[best]) {
				best = i
			}
		}
		n = n.without(from[best : best+1])
		picked = append(picked, from[best])
		from = slices.Delete(from, best, best+1)
	}
	return picked
}

// distance is how far the pod is from meeting the need. Resources count alike, whatever
// their units.
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

// asksLess compares by memory, then by cpu; of two alike the later counts as less.
func asksLess(a, b *v1.Pod) bool {
	for _, name := range []v1.ResourceName{v1.ResourceMemory, v1.ResourceCPU} {
		if x, y := requested(a, name), requested(b, name); x != y {
			return x < y
		}
	}
	return true
}

// requested is how much of a resource the pod gives back when it ends.
func requested(p *v1.Pod, name v1.ResourceName) int64 {
	if name == v1.ResourcePods {
		return 1
	}
	return units(name, resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}))
}
