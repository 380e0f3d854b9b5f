package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"swiftlet/test/bed"
	"swiftlet/test/images"
)

// goldenLimit is enough for the slowest pod to reach its recorded state: four restarts, with back-off
// of 10 s and 20 s before the last two.
const goldenLimit = 95 * time.Second

// TestGolden runs the pods of the recording of the reference, all at the same time. At some time each
// must have its recorded status. Its events, the CRI requests for it, and what it sees from inside
// must be as recorded.
func TestGolden(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	awaitNode(t, node.Name(), timeout, schedulable)
	pods := follow(t, space)
	service, names := createGolden(t, node, space)
	now := viewOf(t, node, space, "golden", service.Spec.ClusterIP, "<service address>")
	deadline := time.Now().Add(goldenLimit)

	statuses := map[string]*corev1.Pod{}
	t.Run("debug", func(t *testing.T) {
		debug(t, pods.await(t, "full", deadline, ready))
	})
	for _, name := range names {
		t.Run("status/"+name, func(t *testing.T) {
			statuses[name] = awaitRecorded(t, pods, name, deadline, now)
		})
	}
	t.Run("status/crash waits", func(t *testing.T) {
		pods.await(t, "crash", deadline, func(pod *corev1.Pod) string {
			return difference(crashWaits(pod), waiting(pod))
		})
	})
	for _, name := range names {
		t.Run("events/"+name, func(t *testing.T) { awaitEvents(t, now, space, name, "") })
		t.Run("calls/"+name, func(t *testing.T) { compareCalls(t, now, space, name) })
	}
	for _, name := range []string{"full", "secure"} {
		t.Run("inside/"+name, func(t *testing.T) { compareInside(t, now, node, statuses[name]) })
	}
}

// goldenDeadline replaces the 5 seconds of the recording. On a busy machine the start took as long, and
// a signal that arrives before runc has executed the container's program ends runc, with another exit code.
const goldenDeadline = 20 // seconds

// createGolden creates all objects of the manifests. The pod with a deadline is created before the
// other pods: the deadline counts from its creation, and its container must run before that.
func createGolden(t *testing.T, node *bed.Box, space string) (service *corev1.Service, pods []string) {
	t.Helper()
	core, ctx := client().CoreV1(), t.Context()
	for _, object := range goldenObjects(t) {
		var err error
		switch object := object.(type) {
		case *corev1.ConfigMap:
			_, err = core.ConfigMaps(space).Create(ctx, object, metav1.CreateOptions{})
		case *corev1.Secret:
			_, err = core.Secrets(space).Create(ctx, object, metav1.CreateOptions{})
		case *corev1.Service:
			service, err = core.Services(space).Create(ctx, object, metav1.CreateOptions{})
		case *corev1.Pod:
			object.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node.Name()}
			pods = append(pods, object.Name)
			if object.Spec.ActiveDeadlineSeconds != nil {
				*object.Spec.ActiveDeadlineSeconds = goldenDeadline
			}
			_, err = core.Pods(space).Create(ctx, object, metav1.CreateOptions{})
			if err == nil && object.Spec.ActiveDeadlineSeconds != nil {
				awaitPod(t, space, object.Name, timeout, ready)
			}
		default:
			t.Fatalf("unexpected object %T in the manifests", object)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return service, pods
}

// goldenObjects decodes the manifests and puts a pod with a deadline before the other pods.
func goldenObjects(t *testing.T) []runtime.Object {
	t.Helper()
	var objects []runtime.Object
	for _, document := range bytes.Split(testdata(t, "golden/manifests.yaml"), []byte("\n---\n")) {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	rank := func(object runtime.Object) int {
		switch pod, ok := object.(*corev1.Pod); {
		case !ok:
			return 0
		case pod.Spec.ActiveDeadlineSeconds != nil:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(objects, func(a, b runtime.Object) int { return cmp.Compare(rank(a), rank(b)) })
	return objects
}

// debug adds an ephemeral container, as kubectl debug did in the recording.
func debug(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"ephemeralContainers": []corev1.EphemeralContainer{{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name:    "debugger-bp9b5",
			Image:   images.Busybox,
			Command: []string{"sleep", "5"},
		},
		TargetContainerName: "main",
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client().CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "ephemeralcontainers")
	if err != nil {
		t.Fatal(err)
	}
}

// awaitRecorded returns the version of the pod that has the recorded status.
func awaitRecorded(t *testing.T, pods *history, name string, deadline time.Time, now view) *corev1.Pod {
	t.Helper()
	var statuses map[string]map[string]any
	if err := yaml.Unmarshal(testdata(t, "golden/statuses.yaml"), &statuses); err != nil {
		t.Fatal(err)
	}
	want := recording.status(t, statuses[name])
	compare := func(pod *corev1.Pod) []string {
		return differences(name+" status", want, now.status(t, pod.Status))
	}
	pod := pods.await(t, name, deadline, func(pod *corev1.Pod) string { return unexplained(compare(pod)) })
	report(t, compare(pod))
	return pod
}

func crashWaits(pod *corev1.Pod) corev1.ContainerStateWaiting {
	return corev1.ContainerStateWaiting{
		Reason:  "CrashLoopBackOff",
		Message: fmt.Sprintf("back-off 20s restarting failed container=c pod=crash_%s(%s)", pod.Namespace, pod.UID),
	}
}

func waiting(pod *corev1.Pod) corev1.ContainerStateWaiting {
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Waiting != nil })
	if i < 0 {
		return corev1.ContainerStateWaiting{}
	}
	return *pod.Status.ContainerStatuses[i].State.Waiting
}
