package bench

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// crashes kills the container of a new pod each time: a second crash of the same container waits for
// its back-off.
func crashes(ctx context.Context, t *trial) error {
	for range t.repeat(5, 3) {
		pods := []*corev1.Pod{newPod("crash")}
		if _, err := t.subject.start(ctx, pods); err != nil {
			return err
		}
		took, err := t.subject.crash(ctx, pods[0])
		if err != nil {
			return err
		}
		t.record("crash", took.Seconds())
		if _, err := t.subject.delete(ctx, pods); err != nil {
			return err
		}
	}
	return nil
}
