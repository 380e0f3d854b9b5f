package admit

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// mismatch is a failed predicate of a pod and the node.
type mismatch struct{ predicate, text string }

// predicates compare pod and node. Each is named like the scheduler plugin that does the same.
var predicates = []func(*v1.Pod, *v1.Node, []*v1.Pod) *mismatch{
	affinity, nodeName, hostPorts, taints,
}

// Fit repeats the scheduler's checks, because the scheduler does not see static pods, may have
// been bypassed, and may have used an older state of the node. One goroutine may call the check.
func Fit(getNode func() (*v1.Node, error), preempt Preempt) Check {
	used := &usage{}
	return func(p *v1.Pod, others []*v1.Pod) *pod.Rejection {
		node, err := getNode()
		if err != nil {
			return pod.Reject("InvalidNodeInfo", "Kubelet cannot get node info.")
		}
		return rejectUnfit(p, others, used.findShortages(p, node, others), findMismatches(p, node, others), preempt)
	}
}

// rejectUnfit rejects the pod for its first problem, shortages before mismatches. For a
// critical pod it preempts others instead of rejecting the pod for a shortage.
func rejectUnfit(p *v1.Pod, others []*v1.Pod, shortages []Shortage, mismatches []mismatch, preempt Preempt) *pod.Rejection {
	if len(shortages) > 0 && pod.IsCritical(p) && preempt != nil {
		if len(mismatches) == 0 {
			if err := preempt(p, others, shortages); err != nil {
				return pod.Reject("UnexpectedAdmissionError", "Unexpected error while attempting to recover from admission failure: %v", err)
			}
		}
		shortages = nil
	}
	if len(shortages) > 0 {
		return pod.Reject("OutOf"+string(shortages[0].Resource), "%s", shortages[0])
	}
	if len(mismatches) > 0 {
		return pod.Reject(mismatches[0].predicate, "Predicate %s failed: %s", mismatches[0].predicate, mismatches[0].text)
	}
	return nil
}

func findMismatches(p *v1.Pod, node *v1.Node, others []*v1.Pod) []mismatch {
	var all []mismatch
	for _, predicate := range predicates {
		if m := predicate(p, node, others); m != nil {
			all = append(all, *m)
		}
	}
	return all
}

// Shortage is a resource that the node has too little of for the pod. CPU is in millicores,
// other resources are in whole units.
type Shortage struct {
	Resource                  v1.ResourceName
	Requested, Used, Capacity int64
}

// Missing is the amount that has to be freed.
func (s Shortage) Missing() int64 { return s.Requested - (s.Capacity - s.Used) }

func (s Shortage) String() string {
	return fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
		s.Resource, s.Requested, s.Used, s.Capacity)
}
