package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
	"swiftlet/test/images"
)

// timeout is the limit for everything that should be quick, on a loaded machine.
const timeout = 30 * time.Second

// timeoutFor returns a limit that is longer for the reference kubelet, where it is known to be slow.
func timeoutFor(ours, reference time.Duration) time.Duration {
	if kubelet == bed.Reference {
		return reference
	}
	return ours
}

func client() kubernetes.Interface { return cluster.ControlPlane.Client }

// namespace creates a namespace and waits for its service account. It is not deleted.
func namespace(t *testing.T) string {
	t.Helper()
	prefix := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())) + "-"
	made, err := client().CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	await(t, listWatch{
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client().CoreV1().ServiceAccounts(made.Name).List(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client().CoreV1().ServiceAccounts(made.Name).Watch(ctx, o)
		},
	}, "default", timeout, func(account *corev1.ServiceAccount) string {
		if account == nil {
			return "the namespace has no service account"
		}
		return ""
	})
	return made.Name
}

// clearedNamespace creates a namespace whose pods are deleted when the test ends, so that the next node
// of the same name does not get them.
func clearedNamespace(t *testing.T) string {
	t.Helper()
	in := namespace(t)
	t.Cleanup(func() {
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
		if err := client().CoreV1().Pods(in).DeleteCollection(context.Background(), now, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	})
	return in
}

// exitOnTerm is a script that runs until SIGTERM and then exits at once.
const exitOnTerm = "trap 'exit 0' TERM; while :; do sleep 3600 & wait; done"

// sleeper returns a pod that runs until SIGTERM and then exits at once. If SIGTERM arrives before the
// shell has set its trap, which may be after the pod is ready, the whole grace period passes; it is
// shorter than the timeouts of tests.
func sleeper(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{corev1.LabelHostname: node},
			TerminationGracePeriodSeconds: ptr.To[int64](10),
			Containers: []corev1.Container{{
				Name:    "c",
				Image:   images.Busybox,
				Command: []string{"sh", "-c", exitOnTerm},
			}},
		},
	}
}

func create(t *testing.T, namespace string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	made, err := client().CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// awaitPod waits until check returns "" for the pod. check is called with every version of the pod, and
// with nil while it does not exist.
func awaitPod(t *testing.T, namespace, name string, limit time.Duration, check func(*corev1.Pod) string) *corev1.Pod {
	t.Helper()
	return await(t, pods(namespace), name, limit, check)
}

func awaitNode(t *testing.T, name string, limit time.Duration, check func(*corev1.Node) string) *corev1.Node {
	t.Helper()
	return await(t, listWatch{
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client().CoreV1().Nodes().List(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client().CoreV1().Nodes().Watch(ctx, o)
		},
	}, name, limit, check)
}

func pods(namespace string) listWatch {
	return listWatch{
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client().CoreV1().Pods(namespace).List(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client().CoreV1().Pods(namespace).Watch(ctx, o)
		},
	}
}

// ready checks that the pod is ready.
func ready(pod *corev1.Pod) string {
	if pod == nil {
		return "the pod does not exist"
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return ""
		}
	}
	return "the pod is not ready: " + string(pod.Status.Phase)
}

// gone checks that the pod does not exist.
func gone(pod *corev1.Pod) string {
	if pod != nil {
		return "the pod still exists"
	}
	return ""
}

func byName(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
}
