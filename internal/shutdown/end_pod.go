package shutdown

import (
	"context"
	"log/slog"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// PodEnder ends a pod that is in the way of a shutdown.
type PodEnder struct {
	Workers interface {
		Evict(uid types.UID, failure pod.Failure, grace *int64) (found bool)
		// Finished is closed when nothing of the pod runs any more.
		Finished(types.UID) (finished <-chan struct{}, found bool)
	}
	// Written returns when the API server has the pod's latest status.
	Written func(context.Context, types.UID) error
	Log     *slog.Logger
}

// End returns when nothing of the pod is left and the API server, where there is one, has its
// last status; or when ctx is done.
func (e PodEnder) End(ctx context.Context, p *v1.Pod, grace int64) {
	const message = "Pod was terminated in response to imminent node shutdown."
	e.Log.Info("node shutdown: terminating pod", "pod", pod.RefOf(p).String(), "gracePeriodSeconds", grace)
	finished, found := e.Workers.Finished(p.UID)
	e.Workers.Evict(p.UID, pod.Failure{Reason: "Terminated", Message: message, Condition: &v1.PodCondition{
		Type:    v1.DisruptionTarget,
		Status:  v1.ConditionTrue,
		Reason:  v1.PodReasonTerminationByKubelet,
		Message: message,
	}}, &grace)
	if found {
		select {
		case <-finished:
		case <-ctx.Done():
			return
		}
	}
	if err := e.Written(ctx, p.UID); err != nil {
		e.Log.Warn("node shutdown: the API server does not have the pod's last status", "pod", pod.RefOf(p).String(), "err", err)
	}
}
