package admit

import (
	"fmt"
	"log/slog"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// Preempt makes room for a critical pod by ending others. It does not wait for their end,
// and sees to it that the pod does.
type Preempt func(p *v1.Pod, others []*v1.Pod, lacking []Shortage) error

// Events records what the user should see.
type Events interface {
	Eventf(object apiruntime.Object, eventtype, reason, messageFmt string, args ...any)
}

// Evictor ends pods.
type Evictor interface {
	// Evict ends a pod. A nil grace is the pod's own.
	Evict(uid types.UID, failure pod.Failure, grace *int64) (found bool)
	// StartAfter delays the start of a pod until none of the containers of the others runs.
	StartAfter(uid types.UID, others []types.UID)
}

// Preempting ends the pods that Victims picks.
func Preempting(workers Evictor, events Events, log *slog.Logger) Preempt {
	return func(p *v1.Pod, others []*v1.Pod, lacking []Shortage) error {
		victims, err := Victims(p, others, lacking)
		if err != nil {
			return fmt.Errorf("preemption: error finding a set of pods to preempt: %w", err)
		}
		const reason, message = "Preempting", "Preempted in order to admit critical pod"
		var uids []types.UID
		for _, v := range victims {
			log.Info("preempting a pod for a critical one", "pod", pod.RefOf(v).String(), "for", pod.RefOf(p).String(), "lacking", lacking)
			events.Eventf(pod.EventRef(v, ""), v1.EventTypeWarning, reason, message)
			workers.Evict(v.UID, pod.Failure{Reason: reason, Message: message, Condition: &v1.PodCondition{
				Type:    v1.DisruptionTarget,
				Status:  v1.ConditionTrue,
				Reason:  v1.PodReasonTerminationByKubelet,
				Message: "Pod was preempted by Kubelet to accommodate a critical pod.",
			}}, nil)
			uids = append(uids, v.UID)
		}
		workers.StartAfter(p.UID, uids)
		return nil
	}
}
