package agent

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/admit"
	"swiftlet/internal/pod"
)

// preempt ends pods to make room for a critical one, which begins when they have ended.
func (a *Agent) preempt(p *v1.Pod, others []*v1.Pod, lacking []admit.Shortage) error {
	victims, err := admit.Victims(p, others, lacking)
	if err != nil {
		return fmt.Errorf("preemption: error finding a set of pods to preempt: %w", err)
	}
	const reason, message = "Preempting", "Preempted in order to admit critical pod"
	var uids []types.UID
	for _, v := range victims {
		a.log.Info("making room for a critical pod", "pod", pod.RefOf(v).String(), "for", pod.RefOf(p).String(), "lacking", lacking)
		a.api.events.Eventf(pod.EventRef(v, ""), v1.EventTypeWarning, reason, message)
		a.pods.workers.Evict(v.UID, pod.Failure{Reason: reason, Message: message, Condition: &v1.PodCondition{
			Type:    v1.DisruptionTarget,
			Status:  v1.ConditionTrue,
			Reason:  v1.PodReasonTerminationByKubelet,
			Message: "Pod was preempted by Kubelet to accommodate a critical pod.",
		}}, nil)
		uids = append(uids, v.UID)
	}
	a.pods.workers.Follow(p.UID, uids)
	return nil
}
