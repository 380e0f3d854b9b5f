package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain runs the agent if this is the process that startNode has started.
func TestMain(m *testing.M) {
	if len(os.Args) != 3 || os.Args[1] != "-agent" {
		os.Exit(m.Run())
	}
	if err := runAgent(context.Background(), os.Args[2], false, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

// These are counts, never times. If a change lowers one, lower its limit here. Allocations vary by a tenth, as
// retries and relists fall among the starts on a busy machine.
const (
	fewPods, manyPods = 20, 120

	mostHeap        = 32_000.0 // bytes of a settled pod
	mostGoroutines  = 0.1      // of a settled pod
	mostAllocations = 8_000.0  // objects of the start of a pod, among others
)

// TestGrowth holds what a further pod costs the agent, on a node that has some.
func TestGrowth(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector changes what is allocated")
	}
	n, err := startNode(t.Context(), "", false)
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	grow := func(number int) use {
		if _, err := n.grow(t.Context(), number); err != nil {
			t.Fatal(err)
		}
		if err := n.pause(t.Context(), quiet); err != nil {
			t.Fatal(err)
		}
		settled, err := n.ask("collect")
		if err != nil {
			t.Fatal(err)
		}
		return settled
	}
	few, many := grow(fewPods), grow(manyPods)
	const pods = manyPods - fewPods
	for _, count := range []struct {
		what      string
		got, most float64
	}{
		{"bytes of heap", float64(many.Heap) - float64(few.Heap), mostHeap},
		{"goroutines", float64(many.Goroutines) - float64(few.Goroutines), mostGoroutines},
		{"allocations", float64(many.Allocations) - float64(few.Allocations), mostAllocations},
	} {
		t.Logf("%.1f %s a pod", count.got/pods, count.what)
		if count.got/pods > count.most {
			t.Errorf("a pod takes %.1f %s, at most %.1f are accepted", count.got/pods, count.what, count.most)
		}
	}
}

func TestPhasesThatMeasureNothing(t *testing.T) {
	for _, c := range []struct {
		single int
		idle   time.Duration
		want   string
	}{{0, time.Minute, "-single is 0"}, {-1, time.Minute, "-single is -1"}, {1, 0, "-idle is 0s"}} {
		if err := checkPhases(c.single, c.idle); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
	if err := checkPhases(1, time.Second); err != nil {
		t.Error(err)
	}
}
