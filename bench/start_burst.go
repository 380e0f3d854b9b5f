package bench

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

func pods60(ctx context.Context, t *trial) error {
	return t.burst(ctx, 60, func(context.Context, *trial) error { return nil })
}

func pods200(ctx context.Context, t *trial) error {
	return t.burst(ctx, 200, func(ctx context.Context, t *trial) error {
		if err := scrapes(ctx, t); err != nil {
			return err
		}
		return restart200(ctx, t)
	})
}

// burst starts n pods at once, measures the kubelet while they run, and deletes them at once. between
// measures more of a kubelet.
func (t *trial) burst(ctx context.Context, n int, between func(context.Context, *trial) error) error {
	pods := newPods("burst", t.number(n))
	if err := t.startBurst(ctx, n, pods); err != nil {
		return err
	}
	if _, is := t.subject.(*kubelet); is {
		if err := t.idle(ctx, n); err != nil {
			return err
		}
		if err := between(ctx, t); err != nil {
			return err
		}
	}
	if err := settle(ctx); err != nil {
		return err
	}
	took, err := t.subject.delete(ctx, pods)
	if err != nil {
		return err
	}
	t.record(fmt.Sprintf("delete_%d", n), took.total.Seconds())
	return nil
}

// startBurst measures CPU from the first create to the last Ready.
func (t *trial) startBurst(ctx context.Context, n int, pods []*corev1.Pod) error {
	var took spans
	used, err := t.cluster.cpuOf(t.subject, func() (err error) {
		took, err = t.subject.start(ctx, pods)
		return err
	})
	if err != nil {
		return err
	}
	row := fmt.Sprintf("start_%d", n)
	t.record(row, took.total.Seconds())
	t.record(row+"_machine_cpu", used.machine.Seconds())
	if t.subject.name() != Bare {
		t.record(row+"_agent_cpu", used.agent.Seconds())
		t.record(row+"_api_cpu", used.server.Seconds())
	}
	return nil
}
