package bench

import (
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"

	"swiftlet/test/images"
)

// namespace is where all pods of a run are.
const namespace = "bench"

var podNumber atomic.Int64

// newPod returns a pod of one container that runs until SIGTERM and then exits at once. It is the
// pause program, so that the container's own CPU does not count.
func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", name, podNumber.Add(1)), Namespace: namespace,
			UID: types.UID(uuid.NewUUID()), // of pods on the bare node; the API server sets its own
		},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](20),
			Containers:                    []corev1.Container{pauseContainer("c")},
		},
	}
}

// newPods returns n pods.
func newPods(name string, n int) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = newPod(name)
	}
	return pods
}

func pauseContainer(name string) corev1.Container {
	return corev1.Container{Name: name, Image: images.Pause, ImagePullPolicy: corev1.PullIfNotPresent}
}

// shellContainer runs until SIGTERM, in an image that has a shell and its tools.
func shellContainer(name string, script string) corev1.Container {
	return corev1.Container{
		Name: name, Image: images.Busybox, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"sh", "-c", script},
	}
}

// waitScript runs until SIGTERM.
const waitScript = "trap 'exit 0' TERM; sleep 36000 & wait"

// isReady is true of a pod that is ready.
func isReady(p *corev1.Pod) bool {
	if p == nil {
		return false
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// isGone is true of a pod that does not exist.
func isGone(p *corev1.Pod) bool { return p == nil }
