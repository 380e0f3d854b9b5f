package path

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// These tests hold what a pod costs, in counts: calls, writes, bytes, timers and allocations. They never
// hold times. If a change lowers a count, lower it here.

const (
	countedPods     = 20
	countedMinutes  = 10
	mostAllocations = 415.0 // of a sync that finds nothing to do
)

// TestCounts: one more call, write, event or timer per pod, or per idle minute, fails.
func TestCounts(t *testing.T) {
	if testing.Short() {
		t.Skip("how many changes a patch has depends on the order of goroutines, which the race detector changes")
	}
	onTestNode(t, func(w *testNode) {
		w.checkCost("start", func() { applyCounted(w) }, settleTime, countedPods, map[string]int{
			"cri RunPodSandbox": 1, "cri CreateContainer": 1, "cri StartContainer": 1, "cri ImageStatus": 1,
			"cri ListPodSandbox": 1, "cri ListContainers": 1, "cri PodSandboxStatus": 1, "cri ContainerStatus": 1,
			"api patch": 1, "api patch bytes": 2600, "events": 3,
		})
		w.checkCost("idle minute", func() {}, countedMinutes*time.Minute, countedMinutes, map[string]int{
			"cri ListPodSandbox": 1, "cri ListContainers": 1, "timers": 2,
		})
		w.checkCost("end", func() { deleteCounted(w) }, settleTime, countedPods, map[string]int{
			"cri StopContainer": 1, "cri StopPodSandbox": 2, "cri RemoveContainer": 1, "cri RemovePodSandbox": 1,
			"cri ListPodSandbox": 4, "cri ListContainers": 4, "cri ContainerStatus": 3,
			"api patch": 2, "api patch bytes": 5000, "api delete": 1, "events": 1, "timers": 1,
		})
	})
}

// TestCountsOfSync holds the allocations of a sync that finds nothing to do, with everything it wakes up.
func TestCountsOfSync(t *testing.T) {
	onTestNode(t, func(w *testNode) {
		applyCounted(w)
		w.settle()
		w.runtime.ResetCalls()
		got := testing.AllocsPerRun(100, func() {
			w.agent.workers.Wake(types.UID("pod-0-uid"))
			synctest.Wait()
		})
		t.Logf("a sync allocates %.0f times", got)
		if calls := w.runtime.Calls(); len(calls) > 0 {
			t.Errorf("a sync that finds nothing to do called the runtime: %v", calls)
		}
		if got > mostAllocations {
			t.Errorf("a sync that finds nothing to do allocates %.0f times, at most %.0f are accepted", got, mostAllocations)
		}
	})
}

func applyCounted(w *testNode) {
	var all []string
	for i := range countedPods {
		all = append(all, fmt.Sprintf("metadata: {name: pod-%d}\nspec:\n  containers:\n  - {name: main, image: app:1}\n", i))
	}
	if err := w.store.apply([]byte(strings.Join(all, "\n---\n"))); err != nil {
		w.t.Fatal(err)
	}
}

func deleteCounted(w *testNode) {
	for i := range countedPods {
		if err := w.store.delete(fmt.Sprint("pod-", i), -1); err != nil {
			w.t.Fatal(err)
		}
	}
}

// checkCost compares what act and the time after it cost with the wanted counts per unit, a pod or a
// minute. Pods run in parallel and may share or miss a write now and then, so a count may differ by less
// than half a unit; bytes may differ by 2 %.
func (w *testNode) checkCost(what string, act func(), then time.Duration, units int, want map[string]int) {
	w.t.Helper()
	before := w.counts()
	act()
	w.pass(then)
	got := w.counts()
	for name := range want {
		got[name] += 0 // so that a count that is missing is compared
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		each := float64(got[name]-before[name]) / float64(units)
		// A patch has more bytes if it reports several changes at once, so bytes have only an upper limit.
		fewer := float64(want[name])-each > 0.5 && !strings.HasSuffix(name, "bytes")
		if fewer || each-float64(want[name]) > 0.5 {
			w.t.Errorf("%s: %.2f of %s, want %d", what, each, name, want[name])
		}
	}
}

// counts returns what the node has cost so far.
func (w *testNode) counts() map[string]int {
	written := &w.agent.written
	all := map[string]int{
		"api patch": int(written.patches.Load()), "api patch bytes": int(written.bytes.Load()), "api delete": int(written.deletes.Load()),
		"events": w.events.count(), "timers": int(w.clock.fired.Load()),
	}
	for _, call := range w.runtime.Calls() {
		all["cri "+call.Method]++
	}
	return all
}

// writes counts the agent's writes to the API server.
type writes struct{ patches, deletes, bytes atomic.Int64 }
