package bench

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// readinessFlips changes the answer to a readiness probe and measures from that answer to the changed
// status. The probe's period is not part of it.
func readinessFlips(ctx context.Context, t *trial) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	k := t.kubelet()
	p := newPod("readiness")
	p.Spec.Containers[0].ReadinessProbe = t.httpProbe(p.Name)
	if _, err := k.start(ctx, []*corev1.Pod{p}); err != nil {
		return err
	}
	for i := range t.repeat(8, 4) {
		fails := i%2 == 0
		flipped := k.pods.expect(p.Name, func(p *corev1.Pod) bool { return isReady(p) != fails })
		answered, err := firstAnswer(ctx, t.cluster.answers.set(p.Name, fails))
		if err != nil {
			return err
		}
		shown, err := flipped.at(ctx)
		if err != nil {
			return err
		}
		t.record("readiness", milliseconds(shown.Sub(answered)))
	}
	_, err := k.delete(ctx, []*corev1.Pod{p})
	return err
}

func firstAnswer(ctx context.Context, answered <-chan time.Time) (time.Time, error) {
	select {
	case at := <-answered:
		return at, nil
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("wait for probe: %w", context.Cause(ctx))
	}
}

// httpProbe is a probe with a period of a second that this process answers.
func (t *trial) httpProbe(pod string) *corev1.Probe {
	return &corev1.Probe{
		PeriodSeconds: 1, TimeoutSeconds: 1, FailureThreshold: 1, SuccessThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Host: t.cluster.bed.Gateway(), Port: intstr.FromInt(t.cluster.answers.port), Path: "/" + pod, Scheme: corev1.URISchemeHTTP,
		}},
	}
}
