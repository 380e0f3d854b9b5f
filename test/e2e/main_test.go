// Package e2e tests the agent with a real API server and a real containerd. Every test also passes
// with the reference kubelet, which shows that its expectations are right:
// SWIFTLET_BED_KUBELET=reference go test ./test/e2e
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
	"time"

	"swiftlet/test/bed"
)

var (
	cluster *bed.Bed
	kubelet = bed.KubeletKind(cmp.Or(os.Getenv("SWIFTLET_BED_KUBELET"), string(bed.Ours)))
	// steady is the shared node for tests that do not disturb it. It has the name of the node in the
	// recordings: the UID of a static pod depends on it.
	steady *bed.Box
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("e2e: skipped in short mode: the tests start a cluster")
		return
	}
	// Tests spend most of their time waiting.
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
	if cluster, err = bed.Start(ctx, os.Stderr, "GenericWorkload", "DRAWorkloadResourceClaims"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	if steady, err = addNode(ctx, "node-1", bed.KubeletOptions{Kind: kubelet, Calls: steadyCalls()}); err != nil {
		return 1, err
	}
	// An interrupt stops the tests, and the bed is closed first.
	done := make(chan int, 1)
	go func() { done <- m.Run() }()
	select {
	case code = <-done:
		return code, nil
	case <-ctx.Done():
		return 1, context.Cause(ctx)
	}
}

// addNode adds a node with a running kubelet.
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

// ownBed starts a cluster for one test, without nodes.
func ownBed(t *testing.T) *bed.Bed {
	t.Helper()
	own, err := bed.Start(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	})
	own.ShowLogs(t)
	return own
}

// ownNode adds a node for one test.
func ownNode(t *testing.T, name string) *bed.Box { return configuredNode(t, name, "") }

// configuredNode adds a node for one test, with config merged into its default configuration.
func configuredNode(t *testing.T, name, config string) *bed.Box {
	t.Helper()
	node := bareNode(t, name)
	startKubelet(t, node, config)
	return node
}

// bareNode adds a node for one test, without a running kubelet. It is closed when the test ends.
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

// startKubelet starts the kubelet, with config merged into its default configuration, and waits until
// the node is ready.
func startKubelet(t *testing.T, node *bed.Box, config string) {
	t.Helper()
	if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet, Config: config}); err != nil {
		t.Fatal(err)
	}
	if err := node.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// durationFrom returns the duration in an environment variable, or the default if it is not set.
func durationFrom(t *testing.T, variable string, byDefault time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return byDefault
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return d
}

// faultDuration returns how long each fault of a test lasts, and whether all of them are injected: a second
// for a few by default, 20 s if the environment variable is "all", or the duration in it.
func faultDuration(t *testing.T, variable string) (lasts time.Duration, all bool) {
	t.Helper()
	if os.Getenv(variable) == "all" {
		return 20 * time.Second, true
	}
	return durationFrom(t, variable, time.Second), os.Getenv(variable) != ""
}

// steadyCalls is the file with the CRI calls of the steady node's kubelet.
func steadyCalls() string { return filepath.Join(cluster.Logs(), "node-1.calls.jsonl") }

// steadyNode returns the node that tests share.
func steadyNode(t *testing.T) *bed.Box {
	t.Helper()
	cluster.ShowLogs(t)
	return steady
}
