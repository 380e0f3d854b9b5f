package bench

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// execs runs true in a container again and again: kubelets through the API server, as kubectl does.
func execs(ctx context.Context, t *trial) error {
	p := newPod("exec")
	p.Spec.Containers = []corev1.Container{shellContainer("c", waitScript)}
	if _, err := t.subject.start(ctx, []*corev1.Pod{p}); err != nil {
		return err
	}
	for range t.repeat(20, 10) {
		took, err := t.subject.exec(ctx, p, "true")
		if err != nil {
			return err
		}
		t.record("exec", milliseconds(took))
	}
	_, err := t.subject.delete(ctx, []*corev1.Pod{p})
	return err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
