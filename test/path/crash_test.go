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
	}
	return died
}

const initPod = `
metadata: {name: web}
spec:
  initContainers:
  - {name: init, image: app:1}
  - {name: sidecar, image: app:1, restartPolicy: Always}
  containers:
  - {name: main, image: app:1}
`

// crashes are turns in a pod's life. Wherever in them the agent dies, once or twice, they
// end as if it had lived.
var crashes = map[string]struct {
	before, turn func(w *world) error
	runtime      []string
	status       []string
}{
	"start": {
		turn:    func(w *world) error { return w.wishes.apply([]byte(initPod)) },
		runtime: []string{"sandbox web attempt=0 ready", "  init exited 0 attempt=0", "  main running attempt=0", "  sidecar running attempt=0"},
		status:  []string{"web Running ready", "  init terminated 0 Completed, 0 restarts", "  sidecar running, 0 restarts", "  main running, 0 restarts"},
	},
	"end": {
		before: func(w *world) error { return w.wishes.apply([]byte(initPod)) },
		turn:   func(w *world) error { return w.wishes.delete("web", 30) },
	},
	"end of a static pod": {
		before: func(w *world) error { return w.wishes.setStatic([]byte(initPod)) },
		turn:   func(w *world) error { return w.wishes.setStatic() },
	},
	"restart of a container": {
		before:  func(w *world) error { return w.wishes.apply([]byte(initPod)) },
		turn:    func(w *world) error { w.runtime.Exit(w.container("main").Id, 1); return nil },
		runtime: []string{"sandbox web attempt=0 ready", "  init exited 0 attempt=0", "  main exited 1 attempt=0", "  main running attempt=1", "  sidecar running attempt=0"},
		status:  []string{"web Running ready", "  init terminated 0 Completed, 0 restarts", "  sidecar running, 0 restarts", "  main running, 1 restarts"},
	},
	"new sandbox": {
		before: func(w *world) error { return w.wishes.apply([]byte(initPod)) },
		turn:   func(w *world) error { w.runtime.LoseSandbox(w.runtime.Sandboxes()[0].Id); return nil },
		runtime: []string{
			"sandbox web attempt=0 not ready", "  main exited 137 attempt=0", "  sidecar exited 137 attempt=0",
			"sandbox web attempt=1 ready", "  init exited 0 attempt=1", "  main running attempt=1", "  sidecar running attempt=1",
		},
		status: []string{"web Running ready", "  init terminated 0 Completed, 1 restarts", "  sidecar running, 1 restarts", "  main running, 1 restarts"},
	},
}

func TestCrashes(t *testing.T) {
	for name, c := range crashes {
		t.Run(name, func(t *testing.T) {
			eachCrash(t, func(w *world, die func() bool) bool {
				w.exits["init"] = 0
				if c.before != nil {
					if err := c.before(w); err != nil {
						w.t.Fatal(err)
					}
					w.pass(90 * time.Second)
				}
				if err := c.turn(w); err != nil {
					w.t.Fatal(err)
				}
				died := die()
				w.pass(time.Minute)
				if c.runtime == nil {
					w.expect(w.showLeft(), nil)
					return died
				}
				w.expect(w.showRuntime(), c.runtime)
				w.expect(w.showStatus("web"), c.status)
				return died
			})
		})
	}
}

// eachCrash repeats a test with the agent dying at the first call, at the second and so on,
// until there are no more, once before and once after the runtime acted.
func eachCrash(t *testing.T, test func(w *world, die func() bool) (died bool)) {
	step := 1
	if testing.Short() {
		step = 3
	}
	for _, acted := range []bool{false, true} {
		for n := 1; ; n += step {
			died := false
			t.Run(fmt.Sprintf("at call %d acted on %v", n, acted), func(t *testing.T) {
				inWorld(t, func(w *world) {
					died = test(w, func() bool {
						died := w.dieAt(n, acted, 30*time.Second)
						// Once more, early in the next life, where there may be less to do.
						_ = died && n%2 == 0 && w.dieAt(n/2, !acted, 30*time.Second)
						return died
					})
				})
			})
			if died {
				continue
			}
			if n <= 3 && !t.Failed() {
				t.Fatalf("only %d calls were made", n-1)
			}
			break
		}
	}
}
