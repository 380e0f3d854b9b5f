package cgroup

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// The kernel tells of memory that runs short while it does: the alarm rings before the
// process that takes it is through, and not before it begins.
func TestKernelAlarm(t *testing.T) {
	tree := kernelTree(t)
	dir := tree.hierarchy.Dir("memory", tree.Top())
	alarm := tree.NewAlarm(tree.Top())
	rung := runAlarm(t, alarm)
	if tree.Version() == 2 { // it rings when pods come to their limit
		if err := os.WriteFile(dir+"/memory.max", []byte("33554432"), 0); err != nil {
			t.Fatal(err)
		}
	}
	marks := []Mark{{Pods: true, Bytes: 32 << 20}, {Bytes: 1 << 60}}
	for range 3 { // a mark that is set again is the same one
		if err := alarm.Set(marks); err != nil {
			t.Fatal(err)
		}
	}
	if tree.Version() == 1 { // v2 also rings for others' troubles
		select {
		case <-rung:
			t.Error("it rang for nothing")
		case <-time.After(200 * time.Millisecond):
		}
	}
	leaf := dir + "/pod-hog" // v2 has no processes in groups that have groups
	if err := os.Mkdir(leaf, 0o755); err != nil {
		t.Fatal(err)
	}
	startIn(t, leaf, `exec sh -c 'dd if=/dev/zero bs=64M count=1 | sleep 60'`)
	mustRing(t, rung)
}

// runAlarm has the alarm run until the test ends, and passes on its rings.
func runAlarm(t *testing.T, alarm Alarm) <-chan struct{} {
	t.Helper()
	rung := make(chan struct{}, 1000)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- alarm.Run(ctx, func() { rung <- struct{}{} }) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return rung
}

// startIn has a shell do something in a group, whose path is $0, until the test ends.
func startIn(t *testing.T, group, script string, args ...string) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", `echo $$ > "$0/cgroup.procs" && ` + script, group}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kill(context.Background(), []string{group}); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it was killed
	})
}

func mustRing(t *testing.T, rung <-chan struct{}) {
	t.Helper()
	select {
	case <-rung:
	case <-time.After(20 * time.Second):
		t.Fatal("it did not ring")
	}
}

// A mark in a group that is not there is an error, and does not keep others from ringing.
func TestKernelAlarmWithoutGroup(t *testing.T) {
	tree := kernelTree(t)
	if tree.Version() != 1 {
		t.Skip("v2 knows no marks")
	}
	alarm := newUsageAlarm(tree.hierarchy.Dir("memory", tree.Top()), "/nowhere")
	if err := alarm.Set([]Mark{{Pods: true, Bytes: 1}, {Bytes: 1 << 40}}); err == nil {
		t.Error("a group that is not there can be watched")
	}
	if len(alarm.armed) != 1 {
		t.Errorf("%d marks are watched", len(alarm.armed))
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := alarm.Run(ctx, nil); err != nil {
		t.Error(err)
	}
	if err := alarm.Set([]Mark{{Bytes: 1}}); err != nil || len(alarm.armed) != 0 {
		t.Errorf("after its end it watches %d marks, %v", len(alarm.armed), err)
	}
}
