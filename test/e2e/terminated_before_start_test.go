package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// unstarted are pods that end before their first container, or their main one, is made.
var unstarted = map[string]struct {
	change func(*corev1.Pod)
	// deleted pods end because someone deletes them, the others by their deadline.
	deleted bool
}{
	"deadline-image":      {func(p *corev1.Pod) { withoutImage(&p.Spec.Containers[0]) }, false},
	"deadline-init-image": {func(p *corev1.Pod) { initContainer(p); withoutImage(&p.Spec.InitContainers[0]) }, false},
	"deadline-init":       {initContainer, false},
	"deleted-image":       {func(p *corev1.Pod) { withoutImage(&p.Spec.Containers[0]) }, true},
	"deleted-init-image":  {func(p *corev1.Pod) { initContainer(p); withoutImage(&p.Spec.InitContainers[0]) }, true},
	"deleted-init":        {initContainer, true},
}

// withoutImage has a container wait for an image that never comes.
func withoutImage(c *corev1.Container) {
	c.Image, c.ImagePullPolicy = "swiftlet.dev/absent:1", corev1.PullNever
}

// initContainer gives the pod an init container that does not end by itself, and another.
func initContainer(p *corev1.Pod) {
	first, second := p.Spec.Containers[0], p.Spec.Containers[0]
	first.Name, second.Name = "first", "second"
	p.Spec.InitContainers = []corev1.Container{first, second}
}

// TestUnstarted: a pod that ends before its containers were made has the status and the
// events that the reference gives it.
func TestUnstarted(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := clearedNamespace(t)
	now := endView(t, node, space)
	const finalizer = "swiftlet.dev/kept"
	for name, c := range unstarted {
		p := sleeper(name, node.Name())
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		c.change(p)
		if c.deleted {
			p.Finalizers = []string{finalizer} // its last status stays to be read
			p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
		} else {
			p.Spec.ActiveDeadlineSeconds = ptr.To[int64](4)
		}
		create(t, space, p)
	}
	for name, c := range unstarted {
		t.Run(name, func(t *testing.T) {
			if c.deleted {
				awaitPod(t, space, name, usual, waits)
				if err := client().CoreV1().Pods(space).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				defer unlock(t, space, name)
			}
			compareEnd(t, now, space, name, name)
		})
	}
}

// waits is a check: the kubelet has come as far as it can with the pod.
func waits(p *corev1.Pod) string {
	if p == nil || len(p.Status.ContainerStatuses) == 0 {
		return "the kubelet has not seen the pod"
	}
	first := append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...)[0].State
	if first.Running != nil || first.Waiting != nil && first.Waiting.Reason == "ErrImageNeverPull" {
		return ""
	}
	return "its first container has not come to where it waits"
}

// unlock lets a deleted pod go.
func unlock(t *testing.T, space, name string) {
	t.Helper()
	const patch = `{"metadata": {"finalizers": null}}`
	if _, err := client().CoreV1().Pods(space).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}
