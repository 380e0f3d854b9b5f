package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	resourcesv1alpha1 "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"swiftlet/test/bed"
)

// socket connects to a socket in the kubelet's directory.
func socket(t *testing.T, node *bed.Box, path string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+node.Path("/var/lib/kubelet/"+path), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// retryRateLimited retries calls that are rejected by the rate limit, which all tests share.
func retryRateLimited[Q, A any](t *testing.T, call func(context.Context, Q, ...grpc.CallOption) (A, error), request Q) (A, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for {
		answer, err := call(ctx, request)
		if status.Code(err) != codes.ResourceExhausted {
			return answer, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestPodResources tests the PodResources API.
func TestPodResources(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	pod := sleeper("target", node.Name())
	always := corev1.ContainerRestartPolicyAlways
	first, side := pod.Spec.Containers[0], pod.Spec.Containers[0]
	first.Name, first.Command = "first", []string{"true"}
	side.Name, side.RestartPolicy = "side", &always
	pod.Spec.InitContainers = []corev1.Container{first, side}
	startPod(t, space, pod)

	conn := socket(t, node, "pod-resources/kubelet.sock")
	before := scrape(t, node)
	client := resourcesv1.NewPodResourcesListerClient(conn)
	want := fmt.Sprintf(`name:"target" namespace:%q containers:{name:"side"} containers:{name:"c"}`, space)
	one, err := retryRateLimited(t, client.Get, &resourcesv1.GetPodResourcesRequest{PodNamespace: space, PodName: "target"})
	if got := normalizeSpaces(one.GetPodResources()); err != nil || got != want {
		t.Errorf("get = %s, %v, want %s", got, err, want)
	}
	_, err = retryRateLimited(t, client.Get, &resourcesv1.GetPodResourcesRequest{PodNamespace: space, PodName: "none"})
	if status.Code(err) != codes.Unknown || status.Convert(err).Message() != fmt.Sprintf("pod none in namespace %s not found", space) {
		t.Errorf("get of none: %v", err)
	}
	list, err := retryRateLimited(t, client.List, &resourcesv1.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	found := ""
	for _, p := range list.PodResources {
		if p.Namespace == space {
			found += normalizeSpaces(p)
		}
	}
	if found != want {
		t.Errorf("list has %s, want %s", found, want)
	}
	if all, err := retryRateLimited(t, client.GetAllocatableResources, &resourcesv1.AllocatableResourcesRequest{}); err != nil || normalizeSpaces(all) != "" {
		t.Errorf("allocatable = %s, %v, want nothing, as no resource manager is enabled", all, err)
	}
	old, err := retryRateLimited(t, resourcesv1alpha1.NewPodResourcesListerClient(conn).List, &resourcesv1alpha1.ListPodResourcesRequest{})
	if err != nil || !strings.Contains(normalizeSpaces(old), fmt.Sprintf(`pod_resources:{name:"target" namespace:%q containers:{name:"c"}}`, space)) {
		t.Errorf("v1alpha1 = %s, %v", old, err)
	}
	awaitMetrics(t, node, before, map[string]float64{
		`kubelet_pod_resources_endpoint_requests_total{server_api_version="v1"}`:           4,
		`kubelet_pod_resources_endpoint_requests_total{server_api_version="v1alpha1"}`:     1,
		`kubelet_pod_resources_endpoint_requests_list{server_api_version="v1"}`:            1,
		`kubelet_pod_resources_endpoint_requests_get{server_api_version="v1"}`:             2,
		`kubelet_pod_resources_endpoint_errors_get{server_api_version="v1"}`:               1,
		`kubelet_pod_resources_endpoint_requests_get_allocatable{server_api_version="v1"}`: 1,
	})
	testRateLimit(t, client)
}

// normalizeSpaces replaces the random double spaces of protobuf's text format.
func normalizeSpaces(message any) string {
	return strings.Join(strings.Fields(fmt.Sprint(message)), " ")
}

// testRateLimit exceeds the rate limit.
func testRateLimit(t *testing.T, client resourcesv1.PodResourcesListerClient) {
	t.Helper()
	var all sync.WaitGroup
	refused := make(chan error, 500)
	for range cap(refused) {
		all.Go(func() {
			if _, err := client.GetAllocatableResources(t.Context(), &resourcesv1.AllocatableResourcesRequest{}); err != nil {
				refused <- err
			}
		})
	}
	all.Wait()
	close(refused)
	if len(refused) == 0 {
		t.Errorf("none of %d parallel calls was rejected", cap(refused))
	}
	for err := range refused {
		if status.Code(err) != codes.ResourceExhausted || status.Convert(err).Message() != "rejected by rate limit" {
			t.Fatal(err)
		}
	}
}

// TestPodsSocket tests the Pods API on the node's socket.
func TestPodsSocket(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	before := startPod(t, space, sleeper("before", node.Name()))
	api := podsv1alpha1.NewPodsClient(socket(t, node, "pods-api/pods-api.sock"))

	one, err := retryRateLimited(t, api.GetPod, &podsv1alpha1.GetPodRequest{PodUID: string(before.UID)})
	if err != nil {
		t.Fatal(err)
	}
	if p := decodePod(t, one.Pod); p.Name != "before" || p.Namespace != space || p.Status.Phase != corev1.PodRunning || len(p.Spec.Containers) != 1 {
		t.Errorf("get = %+v", p)
	}
	if _, err := retryRateLimited(t, api.GetPod, &podsv1alpha1.GetPodRequest{PodUID: "none"}); status.Code(err) != codes.NotFound {
		t.Errorf("get of none: %v", err)
	}
	list, err := retryRateLimited(t, api.ListPods, &podsv1alpha1.ListPodsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for _, text := range list.Pods {
		if decodePod(t, text).UID == before.UID {
			listed++
		}
	}
	if listed != 1 {
		t.Errorf("the pod is listed %d times", listed)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 4*timeout)
	defer cancel()
	stream, err := api.WatchPods(ctx, &podsv1alpha1.WatchPodsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	// until reads the events of one pod up to the one that matches, and returns the first one's type.
	until := func(uid types.UID, is func(podsv1alpha1.EventType, *corev1.Pod) bool) (first podsv1alpha1.EventType) {
		t.Helper()
		for {
			event, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			p := decodePod(t, event.Pod)
			if p.UID != uid {
				continue
			}
			if first == podsv1alpha1.EventType_UNSPECIFIED {
				first = event.Type
			}
			if is(event.Type, p) {
				return first
			}
		}
	}
	until(before.UID, func(event podsv1alpha1.EventType, p *corev1.Pod) bool {
		return event == podsv1alpha1.EventType_ADDED && p.Status.Phase == corev1.PodRunning
	})
	until("", func(event podsv1alpha1.EventType, _ *corev1.Pod) bool {
		return event == podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE
	})
	after := create(t, space, sleeper("after", node.Name()))
	if first := until(after.UID, func(_ podsv1alpha1.EventType, p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }); first != podsv1alpha1.EventType_ADDED {
		t.Errorf("first event of a new pod is %s, want ADDED", first)
	}
	if err := client().CoreV1().Pods(space).Delete(t.Context(), "after", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	until(after.UID, func(event podsv1alpha1.EventType, p *corev1.Pod) bool {
		return event == podsv1alpha1.EventType_DELETED && p.Name == "after" && p.Namespace == space && len(p.Spec.Containers) == 0
	})
}

func decodePod(t *testing.T, text []byte) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	if err := p.Unmarshal(text); err != nil {
		t.Fatal(err)
	}
	return p
}
