package bench

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
)

var restartRows = []string{"restart_200", "restart_200_agent_cpu"}

// firstPod measures from the start of the process on an empty node.
func firstPod(ctx context.Context, t *trial) error {
	for range t.repeat(2, 1) {
		took, _, err := t.startWithWaitingPod(ctx)
		if err != nil {
			return err
		}
		t.record("first_pod", took.Seconds())
	}
	return nil
}

// restart200 measures with 200 running pods. A kubelet that starts a new pod has found them all.
func restart200(ctx context.Context, t *trial) error {
	took, used, err := t.startWithWaitingPod(ctx)
	if err != nil {
		return err
	}
	t.record("restart_200", took.Seconds())
	t.record("restart_200_agent_cpu", used.Seconds())
	return nil
}

// startWithWaitingPod stops the kubelet, creates a pod, starts the kubelet and measures until the pod
// is ready. It deletes that pod.
func (t *trial) startWithWaitingPod(ctx context.Context) (took, used time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	k, p := t.kubelet(), newPod("waiting")
	if err := k.box.StopKubelet(); err != nil {
		return 0, 0, err
	}
	ready := k.pods.expect(p.Name, isReady)
	if err := k.create(ctx, p); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := k.box.StartKubelet(ctx, bed.KubeletOptions{Kind: k.kind}); err != nil {
		return 0, 0, err
	}
	ended, err := ready.at(ctx)
	if err != nil {
		return 0, 0, err
	}
	pid, err := k.box.KubeletPID()
	if err != nil {
		return 0, 0, err
	}
	if used, err = ProcessCPU(pid); err != nil {
		return 0, 0, err
	}
	_, err = k.delete(ctx, []*corev1.Pod{p})
	return ended.Sub(began), used, err
}
