package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// unstarted are pods that terminate before their first or their main container is created.
var unstarted = map[string]struct {
	change func(*corev1.Pod)
	// deleted pods terminate because they are deleted, the others because of their active deadline.
	deleted bool
}{
	"deadline-image":      {func(p *corev1.Pod) { withoutImage(&p.Spec.Containers[0]) }, false},
	"deadline-init-image": {func(p *corev1.Pod) { initContainer(p); withoutImage(&p.Spec.InitContainers[0]) }, false},
	"deadline-init":       {initContainer, false},
	"deleted-image":       {func(p *corev1.Pod) { withoutImage(&p.Spec.Containers[0]) }, true},
	"deleted-init-image":  {func(p *corev1.Pod) { initContainer(p); withoutImage(&p.Spec.InitContainers[0]) }, true},
	"deleted-init":        {initContainer, true},
}

// withoutImage makes a container wait for a missing image.
func withoutImage(c *corev1.Container) {
	c.Image, c.ImagePullPolicy = "swiftlet.dev/absent:1", corev1.PullNever
}

// initContainer adds an init container that does not complete, and another.
func initContainer(p *corev1.Pod) {
	first, second := p.Spec.Containers[0], p.Spec.Containers[0]
	first.Name, second.Name = "first", "second"
	p.Spec.InitContainers = []corev1.Container{first, second}
}

// TestTerminatedBeforeStart: a pod that terminates before its containers were created has the status and events
// of the recording.
func TestTerminatedBeforeStart(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := clearedNamespace(t)
	now := finalStateView(t, node, space)
	const finalizer = "swiftlet.dev/kept"
	for name, c := range unstarted {
		p := sleeper(name, node.Name())
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		c.change(p)
		if c.deleted {
			p.Finalizers = []string{finalizer} // keeps its last status readable
			p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
		} else {
			p.Spec.ActiveDeadlineSeconds = ptr.To[int64](4)
		}
		create(t, space, p)
	}
	for name, c := range unstarted {
		t.Run(name, func(t *testing.T) {
			if c.deleted {
				awaitPod(t, space, name, timeout, waits)
				if err := client().CoreV1().Pods(space).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				defer removeFinalizers(t, space, name)
			}
			compareFinalState(t, now, space, name, name)
		})
	}
}

// waits checks that the pod has reached the state in which it waits.
func waits(p *corev1.Pod) string {
	if p == nil || len(p.Status.ContainerStatuses) == 0 {
		return "the pod has no status"
	}
	first := append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...)[0].State
	if first.Running != nil || first.Waiting != nil && first.Waiting.Reason == "ErrImageNeverPull" {
		return ""
	}
	return "its first container is neither running nor waiting for its image"
}

// removeFinalizers removes the finalizer of a deleted pod.
func removeFinalizers(t *testing.T, space, name string) {
	t.Helper()
	const patch = `{"metadata": {"finalizers": null}}`
	if _, err := client().CoreV1().Pods(space).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}
