package path

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// crash is the agent's death at one of its calls to the runtime.
type crash struct {
	// in is how many calls are still to come.
	in int
	// acted: the runtime still does what the last call asked; only the answer is lost.
	acted bool
	died  chan struct{}
}

// meet lets a call pass, or has the agent die of it.
func (c *crash) meet(ctx context.Context, w *world, act func() (any, error)) (any, error) {
	w.mu.Lock()
	c.in--
	dies := c.in == 0
	w.mu.Unlock()
	if !dies {
		return act()
	}
	if c.acted {
		_, _ = act()
	}
	w.agent.die()
	close(c.died)
	<-ctx.Done()
	return nil, errors.New("nobody listens")
}

// dieAt has the agent die at its n-th call from now on, and live again a second later. It
// reports whether there were as many calls within the time.
func (w *world) dieAt(n int, acted bool, within time.Duration) (died bool) {
	c := &crash{in: n, acted: acted, died: make(chan struct{})}
	w.mu.Lock()
	w.crash = c
	w.mu.Unlock()
	select {
	case <-c.died:
		died = true
		w.agent.parts.Wait()
		w.pass(time.Second)
	case <-time.After(within):
	}
	w.mu.Lock()
	w.crash = nil
	w.mu.Unlock()
	if died {
		w.start()
		w.pass(30 * time.Second)
	}
	return died
}

const plainPod = `
metadata: {name: web}
spec:
  initContainers:
  - {name: init, image: app:1}
  containers:
  - {name: main, image: app:1}
`

// A pod starts once, wherever in its start the agent dies.
func TestCrashWhileStarting(t *testing.T) {
	want := []string{
		"sandbox web attempt=0 ready",
		"  init exited 0 attempt=0",
		"  main running attempt=0",
	}
	eachCrash(t, func(w *world, die func() bool) bool {
		w.exits["init"] = 0
		if err := w.wishes.apply([]byte(plainPod)); err != nil {
			w.t.Fatal(err)
		}
		died := die()
		w.expect(w.showRuntime(), want)
		w.expect(w.showStatus("web"), []string{
			"web Running ready",
			"  init terminated 0 Completed, 0 restarts",
			"  main running, 0 restarts",
		})
		return died
	})
}

// A pod ends, and leaves nothing, wherever in its end the agent dies.
func TestCrashWhileEnding(t *testing.T) {
	eachCrash(t, func(w *world, die func() bool) bool {
		w.exits["init"] = 0
		if err := w.wishes.apply([]byte(plainPod)); err != nil {
			w.t.Fatal(err)
		}
		w.pass(time.Minute)
		if err := w.wishes.delete("web", 30); err != nil {
			w.t.Fatal(err)
		}
		died := die()
		w.expectNothingLeft()
		return died
	})
}

// eachCrash repeats a test with the agent dying at the first call, at the second and so on,
// until there are no more, once before and once after the runtime acted.
func eachCrash(t *testing.T, test func(w *world, die func() bool) (died bool)) {
	for _, acted := range []bool{false, true} {
		for n := 1; ; n++ {
			died := false
			t.Run(fmt.Sprintf("at call %d acted on %v", n, acted), func(t *testing.T) {
				inWorld(t, func(w *world) {
					died = test(w, func() bool { return w.dieAt(n, acted, 30*time.Second) })
				})
			})
			if died {
				continue
			}
			if n <= 5 && !t.Failed() {
				t.Fatalf("only %d calls were made", n-1)
			}
			break
		}
	}
}
