package bench

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/images"
)

// onePod starts and deletes pods one after another on an otherwise empty node.
func onePod(ctx context.Context, t *trial) error {
	for range t.repeat(10, 5) {
		pods := newPods("one", 1)
		took, err := t.subject.start(ctx, pods)
		if err != nil {
			return err
		}
		t.record("start_one", took.total.Seconds())
		if took, err = t.subject.delete(ctx, pods); err != nil {
			return err
		}
		t.record("delete_one", took.total.Seconds())
	}
	return nil
}

// podShapes starts pods of several containers and with init containers.
func podShapes(ctx context.Context, t *trial) error {
	for range t.repeat(4, 1) {
		for row, shape := range map[string]func(*corev1.Pod){"start_containers_5": fiveContainers, "start_init_3": threeInitContainers} {
			p := newPod("shape")
			shape(p)
			took, err := t.subject.start(ctx, []*corev1.Pod{p})
			if err != nil {
				return err
			}
			t.record(row, took.total.Seconds())
			if _, err := t.subject.delete(ctx, []*corev1.Pod{p}); err != nil {
				return err
			}
		}
	}
	return nil
}

func fiveContainers(p *corev1.Pod) {
	for i := range 4 {
		p.Spec.Containers = append(p.Spec.Containers, pauseContainer(fmt.Sprint("c", i)))
	}
}

func threeInitContainers(p *corev1.Pod) {
	for i := range 3 {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{
			Name: fmt.Sprint("i", i), Image: images.Busybox, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"true"},
		})
	}
}
