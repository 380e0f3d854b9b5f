// Package e2e tests the agent where it will live: under a real API server, upon a real
// containerd. Every test also passes with the reference kubelet, which shows that it asks
// for the right thing: SWIFTLET_BED_KUBELET=reference go test ./test/e2e
package e2e

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"swiftlet/test/bed"
)

var (
	cluster *bed.Bed
	kubelet = bed.KubeletKind(cmp.Or(os.Getenv("SWIFTLET_BED_KUBELET"), string(bed.Ours)))
	// steady is the node for tests that disturb nothing. It has the name of the node that
	// the reference was recorded on: the uid of a static pod depends on it.
	steady *bed.Box
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("e2e: left out, because these tests start a cluster")
		return
	}
	// Tests wait more than they compute.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if cluster, err = bed.Start(ctx, os.Stderr); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	if steady, err = addNode(ctx, "node-1", bed.KubeletOptions{Kind: kubelet, Calls: steadyCalls()}); err != nil {
		return 1, err
	}
	// An interrupt ends the tests at once, but not before the bed is taken down.
	done := make(chan int, 1)
	go func() { done <- m.Run() }()
	select {
	case code = <-done:
		return code, nil
	case <-ctx.Done():
		return 1, context.Cause(ctx)
	}
}

// addNode makes a node with a running kubelet.
func addNode(ctx context.Context, name string, options bed.KubeletOptions) (*bed.Box, error) {
	node, err := cluster.AddNode(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := node.StartKubelet(ctx, options); err != nil {
		return nil, err
	}
	return node, node.WaitReady(ctx)
}

// ownNode is a node that the test may break.
func ownNode(t *testing.T, name string) *bed.Box { return configuredNode(t, name, "") }

// configuredNode is one whose kubelet has this on top of its usual configuration.
func configuredNode(t *testing.T, name, config string) *bed.Box {
	t.Helper()
	node := bareNode(t, name)
	startKubelet(t, node, config)
	return node
}

// bareNode is a node whose kubelet does not run yet. It goes with the test.
func bareNode(t *testing.T, name string) *bed.Box {
	t.Helper()
	node, err := cluster.AddNode(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	})
	cluster.ShowLogs(t)
	return node
}

// startKubelet has the node become ready, with this on top of its usual configuration.
func startKubelet(t *testing.T, node *bed.Box, config string) {
	t.Helper()
	if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet, Config: config}); err != nil {
		t.Fatal(err)
	}
	if err := node.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// steadyCalls is the file with what the steady node's kubelet asked of its runtime.
func steadyCalls() string { return filepath.Join(cluster.Logs(), "node-1.calls.jsonl") }

// steadyNode is the node that tests share.
func steadyNode(t *testing.T) *bed.Box {
	t.Helper()
	cluster.ShowLogs(t)
	return steady
}
