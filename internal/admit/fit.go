package admit

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// mismatch is a predicate that the pod and the node do not meet.
type mismatch struct{ predicate, text string }

// predicates compare pod and node. Their names are the scheduler's plugins'.
var predicates = []func(*v1.Pod, *v1.Node, []*v1.Pod) *mismatch{
	affinity, nodeName, hostPorts, taints,
}

// Fit checks what the scheduler has checked already, because the scheduler does not know
// of static pods, may have been bypassed, and may have worked from an older state.
func Fit(known func() (*v1.Node, error), preempt Preempt) Check {
	return func(p *v1.Pod, others []*v1.Pod) *pod.Rejection {
		node, err := known()
		if err != nil {
			return pod.Reject("InvalidNodeInfo", "Kubelet cannot get node info.")
		}
		return judge(p, others, shortages(p, node, others), mismatches(p, node, others), preempt)
	}
}

// judge tells of the first problem: resources before mismatches, except that a critical
// pod never fails for want of resources, if others can make room.
func judge(p *v1.Pod, others []*v1.Pod, lacking []Shortage, wrong []mismatch, preempt Preempt) *pod.Rejection {
	if len(lacking) > 0 && pod.IsCritical(p) && preempt != nil {
		if len(wrong) == 0 {
			if err := preempt(p, others, lacking); err != nil {
				return pod.Reject("UnexpectedAdmissionError", "Unexpected error while attempting to recover from admission failure: %v", err)
			}
		}
		lacking = nil
	}
	if len(lacking) > 0 {
		return pod.Reject("OutOf"+string(lacking[0].Resource), "%s", lacking[0])
	}
	if len(wrong) > 0 {
		return pod.Reject(wrong[0].predicate, "Predicate %s failed: %s", wrong[0].predicate, wrong[0].text)
	}
	return nil
}

func mismatches(p *v1.Pod, node *v1.Node, others []*v1.Pod) []mismatch {
	var all []mismatch
	for _, predicate := range predicates {
		if m := predicate(p, node, others); m != nil {
			all = append(all, *m)
		}
	}
	return all
}

// Shortage is a resource that the node has too little of for the pod: cpu in thousandths,
// others in whole units.
type Shortage struct {
	Resource                  v1.ResourceName
	Requested, Used, Capacity int64
}

// Missing is how much would have to be freed.
func (s Shortage) Missing() int64 { return s.Requested - (s.Capacity - s.Used) }

func (s Shortage) String() string {
	return fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
		s.Resource, s.Requested, s.Used, s.Capacity)
}
