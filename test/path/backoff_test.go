package path

import (
	"slices"
	"testing"
	"time"
)

// A container that crashes is started again at once, then after 10 s, twice as long each
// time up to five minutes, counted from its exit; one that ran for ten minutes is forgiven.
func TestCrashLoop(t *testing.T) {
	inWorld(t, func(w *world) {
		w.exits["main"] = 1
		if err := w.wishes.apply([]byte("metadata: {name: web}\nspec: {containers: [{name: main, image: 'app:1'}]}")); err != nil {
			t.Fatal(err)
		}
		w.pass(20 * time.Minute)
		want := []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, longestBackoff, longestBackoff}
		if waits := w.waits(); !slices.Equal(waits, want) {
			t.Errorf("starts came %v after the exits before, want %v", waits, want)
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

// waits are the times between a container's exits, each at its start, and its next starts,
// which begin with the question for the image.
func (w *world) waits() []time.Duration {
	var waits []time.Duration
	var exited time.Time
	for _, call := range w.runtime.Calls() {
		switch call.Method {
		case "StartContainer":
			exited = call.At.Add(callTakes)
		case "ImageStatus":
			if !exited.IsZero() {
				waits = append(waits, call.At.Sub(exited).Truncate(100*callTakes))
			}
		}
	}
	return waits
}
