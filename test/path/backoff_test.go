package path

import (
	"slices"
	"testing"
	"time"
)

// A crashing container is restarted at once, then after 10 s, and twice as long each time up to five
// minutes, counted from its exit. The back-off is reset after ten minutes of running.
func TestCrashLoopBackOff(t *testing.T) {
	onTestNode(t, func(w *testNode) {
		w.exits["main"] = 1
		if err := w.store.apply([]byte("metadata: {name: web}\nspec: {containers: [{name: main, image: 'app:1'}]}")); err != nil {
			t.Fatal(err)
		}
		w.pass(20 * time.Minute)
		want := []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, longestBackoff, longestBackoff}
		if restartDelays := w.restartDelays(); !slices.Equal(restartDelays, want) {
			t.Errorf("restart delays %v, want %v", restartDelays, want)
		}
		w.expect(w.showStatus(), []string{"web Running", "  main waiting CrashLoopBackOff, 8 restarts"})

		w.mu.Lock()
		delete(w.exits, "main")
		w.mu.Unlock()
		w.pass(longestBackoff + 2*longestBackoff + time.Second)
		w.runtime.Exit(w.container("main").Id, 1)
		w.settle()
		w.expect(w.showStatus(), []string{"web Running ready", "  main running, 10 restarts"})
	})
}

// restartDelays are the times between a container's exits, each right after its start, and its next
// starts, which begin with ImageStatus.
func (w *testNode) restartDelays() []time.Duration {
	var restartDelays []time.Duration
	var exited time.Time
	for _, call := range w.runtime.Calls() {
		switch call.Method {
		case "StartContainer":
			exited = call.At.Add(callDuration)
		case "ImageStatus":
			if !exited.IsZero() {
				restartDelays = append(restartDelays, call.At.Sub(exited).Truncate(100*callDuration))
			}
		}
	}
	return restartDelays
}
