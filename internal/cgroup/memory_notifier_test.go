package cgroup

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// The notifier notifies while a process allocates memory, and not before.
func TestKernelMemoryNotifier(t *testing.T) {
	tree := kernelTree(t)
	dir := tree.hierarchy.Dir("memory", tree.Kubepods())
	notifier := tree.NewMemoryNotifier(tree.Kubepods())
	notified := runNotifier(t, notifier)
	if tree.Version() == 2 { // it notifies when the pods reach their limit
		if err := os.WriteFile(dir+"/memory.max", []byte("33554432"), 0); err != nil {
			t.Fatal(err)
		}
	}
	thresholds := []MemoryThreshold{{Pods: true, Bytes: 32 << 20}, {Bytes: 1 << 60}}
	for range 3 { // a threshold that is set again is not registered again
		if err := notifier.SetThresholds(thresholds); err != nil {
			t.Fatal(err)
		}
	}
	if tree.Version() == 1 { // on v2 other processes on the machine may cause stalls
		select {
		case <-notified:
			t.Error("notified without memory usage")
		case <-time.After(200 * time.Millisecond):
		}
	}
	leaf := dir + "/pod-hog" // on v2 a cgroup with children has no processes
	if err := os.Mkdir(leaf, 0o755); err != nil {
		t.Fatal(err)
	}
	startIn(t, leaf, `exec sh -c 'dd if=/dev/zero bs=64M count=1 | sleep 60'`)
	expectNotification(t, notified)
}

// runNotifier runs the notifier until the test ends, and forwards its notifications.
func runNotifier(t *testing.T, notifier MemoryNotifier) <-chan struct{} {
	t.Helper()
	notified := make(chan struct{}, 1000)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- notifier.Run(ctx, func() { notified <- struct{}{} }) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return notified
}

// startIn runs a shell script in a cgroup, whose path is $0, until the test ends.
func startIn(t *testing.T, dir, script string, args ...string) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", `echo $$ > "$0/cgroup.procs" && ` + script, dir}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := killProcesses(context.Background(), []string{dir}); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // an error, as it was killed
	})
}

func expectNotification(t *testing.T, notified <-chan struct{}) {
	t.Helper()
	select {
	case <-notified:
	case <-time.After(20 * time.Second):
		t.Fatal("not notified within 20 s")
	}
}

// A threshold of a missing cgroup is an error, and the other thresholds are registered.
func TestKernelUsageNotifierMissingCgroup(t *testing.T) {
	tree := kernelTree(t)
	if tree.Version() != 1 {
		t.Skip("cgroup v2 has no thresholds")
	}
	notifier := newUsageNotifier(tree.hierarchy.Dir("memory", tree.Kubepods()), "/nowhere")
	if err := notifier.SetThresholds([]MemoryThreshold{{Pods: true, Bytes: 1}, {Bytes: 1 << 40}}); err == nil {
		t.Error("registered a threshold of a missing cgroup")
	}
	if len(notifier.registered) != 1 {
		t.Errorf("%d thresholds are registered, want 1", len(notifier.registered))
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := notifier.Run(ctx, nil); err != nil {
		t.Error(err)
	}
	if err := notifier.SetThresholds([]MemoryThreshold{{Bytes: 1}}); err != nil || len(notifier.registered) != 0 {
		t.Errorf("%d thresholds are registered after Run returned, %v", len(notifier.registered), err)
	}
}
