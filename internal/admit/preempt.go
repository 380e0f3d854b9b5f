package admit

import (
	"fmt"
	"log/slog"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"swiftlet/internal/pod"
)

// Preempt evicts other pods to free resources for a critical pod. It does not wait for them to
// stop, but delays the start of the pod until they have.
type Preempt func(p *v1.Pod, others []*v1.Pod, shortages []Shortage) error

// Evictor evicts pods.
type Evictor interface {
	// Evict stops a pod. A nil grace means the pod's own grace period.
	Evict(uid types.UID, failure pod.Failure, grace *int64) (found bool)
	// StartAfter delays the start of a pod until none of the containers of the others runs.
	StartAfter(uid types.UID, others []types.UID)
}

// NewPreempt returns a Preempt that evicts the pods that Victims selects. count counts them by the first
// resource that there is too little of.
func NewPreempt(workers Evictor, events pod.Events, count func(resource string), log *slog.Logger) Preempt {
	return func(p *v1.Pod, others []*v1.Pod, shortages []Shortage) error {
		victims, err := Victims(p, others, shortages)
		if err != nil {
			return fmt.Errorf("preemption: error finding a set of pods to preempt: %w", err)
		}
		const reason, message = "Preempting", "Preempted in order to admit critical pod"
		var uids []types.UID
		for _, v := range victims {
			log.Info("preempting pod", pod.RefOf(v).Attr(), "criticalPod", klog.KObj(p), "shortages", shortages)
			events.Eventf(pod.EventRef(v, ""), v1.EventTypeWarning, reason, message)
			workers.Evict(v.UID, pod.Failure{Reason: reason, Message: message, Condition: &v1.PodCondition{
				Type:    v1.DisruptionTarget,
				Status:  v1.ConditionTrue,
				Reason:  v1.PodReasonTerminationByKubelet,
				Message: "Pod was preempted by Kubelet to accommodate a critical pod.",
			}}, nil)
			uids = append(uids, v.UID)
			count(string(shortages[0].Resource))
		}
		workers.StartAfter(p.UID, uids)
		return nil
	}
}
