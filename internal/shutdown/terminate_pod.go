package shutdown

import (
	"context"
	"log/slog"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// PodTerminator terminates pods for a shutdown.
type PodTerminator struct {
	Workers interface {
		Evict(uid types.UID, failure pod.Failure, grace *int64) (found bool)
		// Finished returns a channel that is closed when the pod has released its resources.
		Finished(types.UID) (finished <-chan struct{}, found bool)
	}
	// StatusWritten waits until the API server has the pod's latest status.
	StatusWritten func(context.Context, types.UID) error
	Log           *slog.Logger
}

// Terminate stops a pod within the grace period, in seconds. It returns when the pod has
// released its resources and the API server, if there is one, has its last status, or when ctx
// is done.
func (t PodTerminator) Terminate(ctx context.Context, p *v1.Pod, grace int64) {
	const message = "Pod was terminated in response to imminent node shutdown."
	t.Log.Info("node shutdown: terminating pod", pod.RefOf(p).Attr(), "gracePeriodSeconds", grace)
	finished, found := t.Workers.Finished(p.UID)
	t.Workers.Evict(p.UID, pod.Failure{Reason: "Terminated", Message: message, Condition: &v1.PodCondition{
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
	if err := t.StatusWritten(ctx, p.UID); err != nil {
		t.Log.Warn("node shutdown: failed to write pod status", pod.RefOf(p).Attr(), "err", err)
	}
}
