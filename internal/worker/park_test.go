package worker

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// TestSettledPodsHaveNoGoroutine: a worker that waits to be woken has none, and nothing that wakes it is lost.
func TestSettledPodsHaveNoGoroutine(t *testing.T) {
	const pods = 50
	for _, c := range []struct {
		name           string
		outcome        pod.Outcome
		err            error
		wantGoroutines int
	}{
		{"settled", pod.Outcome{}, nil, 0},
		{"has something to do later", pod.Outcome{RetryAfter: time.Hour}, nil, pods},
		{"failed", pod.Outcome{}, fmt.Errorf("sync failed"), pods},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSteps()
				s.on["sync"] = func(context.Context, pod.Work) (pod.Outcome, error) { return c.outcome, c.err }
				p := run(t, s)
				synctest.Wait()
				for i := range pods {
					p.Handle(pod.Change{Op: pod.Add, Pod: named(fmt.Sprint(i))}, nil)
				}
				synctest.Wait()
				if got := runningWorkers(); got != c.wantGoroutines {
					t.Errorf("%d pods have %d goroutines, want %d", pods, got, c.wantGoroutines)
				}
				for i := range pods {
					p.Wake(types.UID(fmt.Sprint(i)))
					p.Wake(types.UID(fmt.Sprint(i)))
				}
				synctest.Wait()
				synced := map[string]int{}
				for len(s.seen) > 0 {
					synced[<-s.seen]++
				}
				for i := range pods {
					if got := synced[fmt.Sprint("sync ", i)]; got < 2 || got > 3 { // both may wake it for one step
						t.Errorf("pod %d was synced %d times, want 2 or 3", i, got)
					}
				}
				if got := runningWorkers(); got != c.wantGoroutines {
					t.Errorf("after further steps %d pods have %d goroutines, want %d", pods, got, c.wantGoroutines)
				}
			})
		})
	}
}

// runningWorkers counts the goroutines that run a worker. All others of the process, which come and go, do not matter.
func runningWorkers() int {
	stacks := make([]byte, 1<<20)
	for {
		n := runtime.Stack(stacks, true)
		if n < len(stacks) {
			return strings.Count(string(stacks[:n]), "worker.(*worker).run(")
		}
		stacks = make([]byte, 2*len(stacks))
	}
}

// TestWakeOfParkedWorker: whenever a wake-up comes while a step ends, a further step follows.
func TestWakeOfParkedWorker(t *testing.T) {
	s := newSteps()
	p := run(t, s)
	p.Handle(pod.Change{Op: pod.Add, Pod: named("a")}, nil)
	for range 10_000 {
		s.expect(t, "sync a")
		p.Wake("a") // races with the end of the step
	}
}
