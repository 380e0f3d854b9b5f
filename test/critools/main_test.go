package critools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
	"swiftlet/test/conformance"
)

var (
	cluster  *bed.Bed
	registry *bed.Registry
	programs Programs
	kubelet  = bed.KubeletKind(cmp.Or(os.Getenv("SWIFTLET_BED_KUBELET"), string(bed.Ours)))
	// shared is the node whose runtime is used by an agent and by the tools.
	shared *bed.Box
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("critools: skipped in short mode: the tests start a cluster")
		return
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "critools:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	suite, err := conformance.FindPrograms(ctx, os.Stderr)
	if err != nil {
		return 1, err
	}
	if programs, err = FindPrograms(ctx, suite.Root, os.Stderr); err != nil {
		return 1, err
	}
	if cluster, err = bed.Start(ctx, os.Stderr); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	if registry, err = cluster.StartRegistry("", ""); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, registry.Close()) }()
	if err := push(ctx, suite); err != nil {
		return 1, err
	}
	if shared, err = addNode(ctx, "shared"); err != nil {
		return 1, err
	}
	if err := startPods(ctx); err != nil {
		return 1, err
	}
	done := make(chan int, 1)
	go func() { done <- m.Run() }()
	select {
	case code = <-done:
		return code, nil
	case <-ctx.Done():
		return 1, context.Cause(ctx)
	}
}

// push pushes the images of all registries to the bed's registry, which mirrors them.
func push(ctx context.Context, suite *conformance.Programs) error {
	set, err := suite.CritestImages(ctx, cluster.PauseProgram())
	if err != nil {
		return err
	}
	for name, image := range set {
		_, path, _ := strings.Cut(name, "/")
		if _, err := registry.Push(ctx, path, image); err != nil {
			return err
		}
	}
	return nil
}

// addNode adds a node that pulls from the bed's registry. It has no kubelet.
func addNode(ctx context.Context, name string) (*bed.Box, error) {
	node, err := cluster.AddNode(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, host := range conformance.CritestRegistries {
		if err := node.Mirror(host, registry); err != nil {
			return nil, err
		}
	}
	return node, nil
}

// startPods starts the agent and its pods on the shared node.
func startPods(ctx context.Context) error {
	if err := shared.StartKubelet(ctx, bed.KubeletOptions{Kind: kubelet}); err != nil {
		return err
	}
	if err := shared.WaitReady(ctx); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"wait", "--for=create", "serviceaccount/default", "--timeout=1m"},
		{"apply", "-f", "testdata/pods.yaml"},
		{"wait", "--for=condition=Ready", "pods", "--all", "--timeout=2m"},
	} {
		if _, err := cluster.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// podStatuses reads the status of each pod, by name, from the API server.
func podStatuses(t *testing.T) map[string]corev1.PodStatus {
	t.Helper()
	text, err := cluster.Kubectl(t.Context(), "get", "pods", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var list corev1.PodList
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	statuses := map[string]corev1.PodStatus{}
	for _, pod := range list.Items {
		statuses[pod.Name] = pod.Status
	}
	return statuses
}
