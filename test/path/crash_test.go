package path

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// crash kills the agent at one of its calls to the runtime.
type crash struct {
	// callsLeft is the number of calls until the crash.
	callsLeft int
	// executed: the runtime executes the last call, and only the response is lost.
	executed bool
	died     chan struct{}
}

// intercept executes a call, or kills the agent at it.
func (c *crash) intercept(ctx context.Context, w *testNode, act func() (any, error)) (any, error) {
	w.mu.Lock()
	c.callsLeft--
	isLast := c.callsLeft == 0
	w.mu.Unlock()
	if !isLast {
		return act()
	}
	if c.executed {
		_, _ = act()
	}
	w.agent.kill()
	close(c.died)
	<-ctx.Done()
	return nil, errors.New("agent was killed")
}

// crashAtCall kills the agent at its n-th call and starts it again a second later. It returns false
// if there were fewer calls within the time.
func (w *testNode) crashAtCall(n int, executed bool, within time.Duration) (died bool) {
	c := &crash{callsLeft: n, executed: executed, died: make(chan struct{})}
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

// crashCases are changes of a pod. Wherever the agent crashes in them, once or twice, the result must
// be the same as without a crash.
var crashCases = map[string]struct {
	setup, trigger func(w *testNode) error
	runtime        []string
	status         []string
}{
	"pod start": {
		trigger: func(w *testNode) error { return w.store.apply([]byte(initPod)) },
		runtime: []string{"sandbox web attempt=0 ready", "  init exited 0 attempt=0", "  main running attempt=0", "  sidecar running attempt=0"},
		status:  []string{"web Running ready", "  init terminated 0 Completed, 0 restarts", "  sidecar running, 0 restarts", "  main running, 0 restarts"},
	},
	"pod deletion": {
		setup:   func(w *testNode) error { return w.store.apply([]byte(initPod)) },
		trigger: func(w *testNode) error { return w.store.delete("web", 30) },
	},
	"static pod removal": {
		setup:   func(w *testNode) error { return w.store.setStatic([]byte(initPod)) },
		trigger: func(w *testNode) error { return w.store.setStatic() },
	},
	"container restart": {
		setup:   func(w *testNode) error { return w.store.apply([]byte(initPod)) },
		trigger: func(w *testNode) error { w.runtime.Exit(w.container("main").Id, 1); return nil },
		runtime: []string{"sandbox web attempt=0 ready", "  init exited 0 attempt=0", "  main exited 1 attempt=0", "  main running attempt=1", "  sidecar running attempt=0"},
		status:  []string{"web Running ready", "  init terminated 0 Completed, 0 restarts", "  sidecar running, 0 restarts", "  main running, 1 restarts"},
	},
	"sandbox replacement": {
		setup:   func(w *testNode) error { return w.store.apply([]byte(initPod)) },
		trigger: func(w *testNode) error { w.runtime.KillSandbox(w.runtime.Sandboxes()[0].Id); return nil },
		runtime: []string{
			"sandbox web attempt=0 not ready", "  main exited 137 attempt=0", "  sidecar exited 137 attempt=0",
			"sandbox web attempt=1 ready", "  init exited 0 attempt=1", "  main running attempt=1", "  sidecar running attempt=1",
		},
		status: []string{"web Running ready", "  init terminated 0 Completed, 1 restarts", "  sidecar running, 1 restarts", "  main running, 1 restarts"},
	},
}

func TestCrashAtEveryCall(t *testing.T) {
	for name, c := range crashCases {
		t.Run(name, func(t *testing.T) {
			eachCrash(t, func(w *testNode, die func() bool) bool {
				w.exits["init"] = 0
				if c.setup != nil {
					if err := c.setup(w); err != nil {
						w.t.Fatal(err)
					}
					w.pass(90 * time.Second)
				}
				if err := c.trigger(w); err != nil {
					w.t.Fatal(err)
				}
				died := die()
				w.pass(time.Minute)
				if c.runtime == nil {
					w.expect(w.showLeftovers(), nil)
					return died
				}
				w.expect(w.showRuntime(), c.runtime)
				w.expect(w.showStatus("web"), c.status)
				return died
			})
		})
	}
}

// eachCrash repeats a test with a crash at the first call, at the second and so on, until there are
// no more calls; once before and once after the runtime executed the call. With -short it takes every third
// call, other ones in each case and on each day; TestCrashMatrix of test/simulate takes every call of the
// whole agent.
func eachCrash(t *testing.T, test func(w *testNode, die func() bool) (died bool)) {
	step := 1
	if testing.Short() {
		step = 3
	}
	for i, executed := range []bool{false, true} {
		for n := 1 + (len(t.Name())+time.Now().YearDay()+i)%step; ; n += step {
			died := false
			t.Run(fmt.Sprintf("at call %d executed %v", n, executed), func(t *testing.T) {
				onTestNode(t, func(w *testNode) {
					died = test(w, func() bool {
						died := w.crashAtCall(n, executed, 30*time.Second)
						// A second crash, early in the next run.
						_ = died && n%2 == 0 && w.crashAtCall(n/2, !executed, 30*time.Second)
						return died
					})
				})
			})
			if died {
				continue
			}
			if n <= 3 && !t.Failed() {
				t.Fatalf("there were only %d calls", n-1)
			}
			break
		}
	}
}
