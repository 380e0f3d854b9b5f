package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
)

// steps are the Steps of all pods. They record their calls, and can block or fail.
type steps struct {
	mu    sync.Mutex
	calls []string
	seen  chan string
	// on implements a step; nil succeeds at once.
	on map[string]func(context.Context, pod.Work) (pod.Outcome, error)
}

func newSteps() *steps {
	return &steps{seen: make(chan string, 1000), on: map[string]func(context.Context, pod.Work) (pod.Outcome, error){}}
}

func (s *steps) call(ctx context.Context, what string, w pod.Work) (pod.Outcome, error) {
	entry := what + " " + w.Pod.Name
	if what == "stop" && w.Grace != nil {
		entry += fmt.Sprintf(" %d", *w.Grace)
	}
	s.mu.Lock()
	s.calls = append(s.calls, entry)
	on := s.on[what]
	s.mu.Unlock()
	s.seen <- entry
	if on != nil {
		return on(ctx, w)
	}
	return pod.Outcome{}, nil
}

func (s *steps) Sync(ctx context.Context, w pod.Work) (pod.Outcome, error) {
	return s.call(ctx, "sync", w)
}
func (s *steps) Stop(ctx context.Context, w pod.Work) error {
	_, err := s.call(ctx, "stop", w)
	return err
}
func (s *steps) Finish(ctx context.Context, w pod.Work) error {
	_, err := s.call(ctx, "finish", w)
	return err
}
func (s *steps) Remove(ctx context.Context, w pod.Work) error {
	_, err := s.call(ctx, "remove", w)
	return err
}

// expect waits for exactly these calls, in this order.
func (s *steps) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case got := <-s.seen:
			if got != w {
				t.Fatalf("got step %q, want %q; all: %q", got, w, s.calls)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("step %q was not called; all: %q", w, s.calls)
		}
	}
}

func run(t *testing.T, s *steps) *Pool {
	t.Helper()
	p, err := New(NewTable(), Deps{NewSteps: func() Steps { return s }, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = p.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return p
}

func named(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name)}}
}

func deleted(name string, grace int64) *v1.Pod {
	p := named(name)
	now := metav1.Now()
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &grace
	return p
}

func (p *Pool) waitGone(t *testing.T, uid types.UID) {
	t.Helper()
	for range 500 {
		p.mu.Lock()
		_, known := p.workers[uid]
		gone := p.workerGone
		p.mu.Unlock()
		if !known {
			return
		}
		select {
		case <-gone:
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatalf("pod %s is not gone", uid)
}

func TestPodGoesThroughAllStages(t *testing.T) {
	s := newSteps()
	p := run(t, s)
	p.Handle(pod.Change{Op: pod.Add, Pod: named("a")}, nil)
	s.expect(t, "sync a")
	p.Wake("a")
	s.expect(t, "sync a")
	p.Handle(pod.Change{Op: pod.Delete, Pod: deleted("a", 7)}, nil)
	s.expect(t, "stop a 7", "finish a")
	p.Handle(pod.Change{Op: pod.Remove, Pod: deleted("a", 7)}, nil)
	s.expect(t, "finish a", "remove a")
	p.waitGone(t, "a")
}

func TestCompletedPodStaysUntilRemovedFromSource(t *testing.T) {
	s := newSteps()
	s.on["sync"] = func(context.Context, pod.Work) (pod.Outcome, error) { return pod.Outcome{Ended: true}, nil }
	p := run(t, s)
	p.Handle(pod.Change{Op: pod.Add, Pod: named("a")}, nil)
	s.expect(t, "sync a", "stop a", "finish a")
	p.Handle(pod.Change{Op: pod.Delete, Pod: deleted("a", 0)}, nil)
	s.expect(t, "finish a")
	p.Handle(pod.Change{Op: pod.Remove, Pod: deleted("a", 0)}, nil)
	s.expect(t, "finish a", "remove a")
}

// A terminal phase in the API server stops a pod and cancels its Sync, whoever wrote it. The pod is
// finished once, however often the phase is seen.
func TestTerminalPhaseStopsPod(t *testing.T) {
	for _, op := range []pod.Op{pod.Update, pod.Reconcile} {
		t.Run(op.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSteps()
				s.on["sync"] = func(ctx context.Context, _ pod.Work) (pod.Outcome, error) {
					<-ctx.Done()
					return pod.Outcome{}, ctx.Err()
				}
				p := run(t, s)
				p.Handle(pod.Change{Op: pod.Add, Pod: named("a")}, nil)
				settle()
				failed := named("a")
				failed.Status.Phase = v1.PodFailed
				for range 2 {
					p.Handle(pod.Change{Op: op, Pod: failed}, nil)
					settle()
				}
				s.expect(t, "sync a", "stop a", "finish a")
				if len(s.seen) > 0 {
					t.Errorf("unexpected step %q", <-s.seen)
				}
			})
		})
	}
}

func TestDeleteCancelsSync(t *testing.T) {
	s := newSteps()
	s.on["sync"] = func(ctx context.Context, _ pod.Work) (pod.Outcome, error) {
		<-ctx.Done()
		return pod.Outcome{}, ctx.Err()
	}
	p := run(t, s)
	p.Handle(pod.Change{Op: pod.Add, Pod: named("a")}, nil)
	s.expect(t, "sync a")
	p.Handle(pod.Change{Op: pod.Delete, Pod: deleted("a", 30)}, nil)
	s.expect(t, "stop a 30", "finish a")
}

func TestShorterGracePeriodRestartsStop(t *testing.T) {
	s := newSteps()
	s.on["stop"] = func(ctx context.Context, w pod.Work) (pod.Outcome, error) {
		if *w.Grace == 0 {
			return pod.Outcome{}, nil
		}
		<-ctx.Done()
		return pod.Outcome{}, ctx.Err()
	}
	p := run(t, s)
	p.Handle(pod.Change{Op: pod.Add, Pod: named("a")}, nil)
	s.expect(t, "sync a")
	p.Handle(pod.Change{Op: pod.Delete, Pod: deleted("a", 30)}, nil)
	s.expect(t, "stop a 30")
	p.Handle(pod.Change{Op: pod.Delete, Pod: deleted("a", 60)}, nil) // longer: ignored
	p.Handle(pod.Change{Op: pod.Delete, Pod: deleted("a", 0)}, nil)
	s.expect(t, "stop a 0", "finish a")
}

func TestFailedStepIsRetried(t *testing.T) {
	s := newSteps()
	tries := 0
	s.on["stop"] = func(context.Context, pod.Work) (pod.Outcome, error) {
		if tries++; tries < 3 {
			return pod.Outcome{}, errors.New("busy")
		}
		return pod.Outcome{}, nil
	}
	p := run(t, s)
	p.Orphan(pod.Ref{Namespace: "ns", Name: "a", UID: "a"})
	s.expect(t, "stop a", "stop a", "stop a", "finish a", "remove a")
	p.waitGone(t, "a")
}

// Retry runs a failed step without waiting for its back-off, which is ten seconds at most. It
// does not run steps that did not fail.
func TestRetryRunsFailedStepsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSteps()
		s.on["sync"] = func(_ context.Context, w pod.Work) (pod.Outcome, error) {
			if w.Pod.Name == "failing" {
				return pod.Outcome{}, errors.New("refused")
			}
			return pod.Outcome{}, nil
		}
		p := run(t, s)
		p.Handle(pod.Change{Op: pod.Add, Pod: named("healthy")}, nil)
		p.Handle(pod.Change{Op: pod.Add, Pod: named("failing")}, nil)
		time.Sleep(time.Hour + time.Nanosecond)
		synctest.Wait()
		for len(s.seen) > 0 {
			<-s.seen
		}
		p.Retry()
		synctest.Wait()
		s.expect(t, "sync failing")
		if len(s.seen) != 0 {
			t.Errorf("unexpected step %q", <-s.seen)
		}
		time.Sleep(firstRetry)
		synctest.Wait()
		s.expect(t, "sync failing")
	})
}

func TestRejectedPodIsNeverSynced(t *testing.T) {
	s := newSteps()
	failures := make(chan *pod.Failure, 1)
	s.on["finish"] = func(_ context.Context, w pod.Work) (pod.Outcome, error) {
		failures <- w.Failure
		return pod.Outcome{}, nil
	}
	p := run(t, s)
	p.Handle(pod.Change{Op: pod.Add, Pod: named("a")}, &pod.Failure{Reason: "OutOfcpu"})
	s.expect(t, "stop a", "finish a")
	if failure := <-failures; failure == nil || failure.Reason != "OutOfcpu" {
		t.Errorf("Finish got failure %v, want OutOfcpu", failure)
	}
}

// static returns a static pod named web.
func static(uid types.UID) *v1.Pod {
	p := named("web")
	p.UID = uid
	p.Annotations = map[string]string{pod.AnnotationSource: string(pod.SourceFile)}
	return p
}

func TestStaticPodWaitsForOlderPodWithSameName(t *testing.T) {
	s := newSteps()
	release := make(chan struct{})
	s.on["stop"] = func(context.Context, pod.Work) (pod.Outcome, error) { <-release; return pod.Outcome{}, nil }
	p := run(t, s)
	p.Handle(pod.Change{Op: pod.Add, Pod: static("old")}, nil)
	s.expect(t, "sync web")
	p.Handle(pod.Change{Op: pod.Remove, Pod: static("old")}, nil)
	p.Handle(pod.Change{Op: pod.Add, Pod: static("new")}, nil)
	s.expect(t, "stop web")
	close(release)
	s.expect(t, "finish web", "remove web", "sync web")
}

// TestWaitingPodIsRemovedWhileOlderPodHangs: a pod that waits for a hung one can be removed, and the next one with
// its name still waits.
func TestWaitingPodIsRemovedWhileOlderPodHangs(t *testing.T) {
	s := newSteps()
	release := make(chan struct{})
	s.on["stop"] = func(_ context.Context, w pod.Work) (pod.Outcome, error) {
		if w.Pod.UID == "hung" {
			<-release
		}
		return pod.Outcome{}, nil
	}
	p := run(t, s)
	p.Handle(pod.Change{Op: pod.Add, Pod: static("hung")}, nil)
	s.expect(t, "sync web")
	p.Handle(pod.Change{Op: pod.Remove, Pod: static("hung")}, nil)
	s.expect(t, "stop web")
	p.Handle(pod.Change{Op: pod.Add, Pod: static("waiting")}, nil)
	p.Wake("waiting")
	p.Handle(pod.Change{Op: pod.Add, Pod: static("next")}, nil)
	p.Handle(pod.Change{Op: pod.Remove, Pod: static("waiting")}, nil)
	s.expect(t, "stop web", "finish web", "remove web")
	p.waitGone(t, "waiting")
	if stage, found := p.Stage("next"); !found || stage != Syncing || len(s.seen) > 0 {
		t.Errorf("the next pod is %v and does %d steps, want it to wait", stage, len(s.seen))
	}
	close(release)
	s.expect(t, "finish web", "remove web", "sync web")
}

func TestFinishedClosesAfterFinishStep(t *testing.T) {
	s := newSteps()
	release := make(chan struct{})
	s.on["finish"] = func(context.Context, pod.Work) (pod.Outcome, error) { <-release; return pod.Outcome{}, nil }
	p := run(t, s)
	p.Handle(pod.Change{Op: pod.Add, Pod: named("victim")}, nil)
	s.expect(t, "sync victim")
	finished, found := p.Finished("victim")
	if !found {
		t.Fatal("the pool does not know the pod")
	}
	grace := int64(1)
	p.Evict("victim", pod.Failure{Reason: "Evicted"}, &grace)
	s.expect(t, "stop victim 1", "finish victim")
	select {
	case <-finished:
		t.Error("finished is closed before the Finish step returned")
	default:
	}
	close(release)
	<-finished
	if _, found := p.Finished("unknown"); found {
		t.Error("the pool knows a pod that it was never given")
	}
}

func TestCriticalPodStartsAfterPreemptedPodStopped(t *testing.T) {
	s := newSteps()
	release := make(chan struct{})
	s.on["stop"] = func(context.Context, pod.Work) (pod.Outcome, error) { <-release; return pod.Outcome{}, nil }
	p := run(t, s)
	p.Handle(pod.Change{Op: pod.Add, Pod: named("victim")}, nil)
	s.expect(t, "sync victim")
	p.Evict("victim", pod.Failure{Reason: "Preempting"}, nil)
	p.StartAfter("critical", []types.UID{"victim", "unknown"})
	p.Handle(pod.Change{Op: pod.Add, Pod: named("critical")}, nil)
	s.expect(t, "stop victim")
	if active := p.Active(); len(active) != 1 || active[0].Name != "critical" {
		t.Errorf("active: %v", active)
	}
	close(release)
	got := []string{<-s.seen, <-s.seen}
	slices.Sort(got) // the victim's Finish runs in parallel with the other's Sync
	if want := []string{"finish victim", "sync critical"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A rejected pod does not count against the pods that come after it.
func TestActiveLeavesOutRejectedPods(t *testing.T) {
	s := newSteps()
	release := make(chan struct{})
	defer close(release)
	for _, step := range []string{"sync", "stop"} {
		s.on[step] = func(context.Context, pod.Work) (pod.Outcome, error) { <-release; return pod.Outcome{}, nil }
	}
	p := run(t, s)
	p.Handle(pod.Change{Op: pod.Add, Pod: named("rejected")}, &pod.Failure{Reason: "OutOfcpu"})
	p.Handle(pod.Change{Op: pod.Add, Pod: named("admitted")}, nil)
	if active := p.Active(); len(active) != 1 || active[0].Name != "admitted" {
		t.Errorf("%d pods are active, the first is %s", len(active), active[0].Name)
	}
}

// A critical pod that is in the pool already does not wait for the pods that it preempts to be
// resized, and leaves no entry in startAfter.
func TestResizeOfCriticalPodDoesNotWaitForPreemptedPod(t *testing.T) {
	s := newSteps()
	release := make(chan struct{})
	s.on["stop"] = func(context.Context, pod.Work) (pod.Outcome, error) { <-release; return pod.Outcome{}, nil }
	p := run(t, s)
	for _, name := range []string{"critical", "victim"} {
		p.Handle(pod.Change{Op: pod.Add, Pod: named(name)}, nil)
		s.expect(t, "sync "+name)
	}
	p.Evict("victim", pod.Failure{Reason: "Preempting"}, nil)
	p.StartAfter("critical", []types.UID{"victim"})
	s.expect(t, "stop victim")
	p.Handle(pod.Change{Op: pod.Update, Pod: named("critical")}, nil)
	s.expect(t, "sync critical")
	if active := p.Active(); len(active) != 1 || active[0].Name != "critical" {
		t.Errorf("active: %v", active)
	}
	if len(p.startAfter) != 0 {
		t.Errorf("startAfter has %v, want nothing", p.startAfter)
	}
	close(release)
	s.expect(t, "finish victim")
}

func TestWakeOfEndedPodStopsItAgain(t *testing.T) {
	s := newSteps()
	s.on["sync"] = func(context.Context, pod.Work) (pod.Outcome, error) { return pod.Outcome{Ended: true}, nil }
	p := run(t, s)
	p.Handle(pod.Change{Op: pod.Add, Pod: named("a")}, nil)
	s.expect(t, "sync a", "stop a", "finish a")
	for stage, _ := p.Stage("a"); stage != Ended; stage, _ = p.Stage("a") {
		time.Sleep(time.Millisecond)
	}
	p.Wake("a")
	s.expect(t, "stop a", "finish a")
}

func TestDrainRemovesAllPods(t *testing.T) {
	s := newSteps()
	p := run(t, s)
	for i := range 20 {
		p.Handle(pod.Change{Op: pod.Add, Pod: named(fmt.Sprint("pod", i))}, nil)
	}
	if err := p.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if !slices.Contains(s.calls, fmt.Sprintf("remove pod%d", i)) {
			t.Errorf("pod%d was not removed", i)
		}
	}
}

// A hung step delays its own pod only.
func TestHungStepDelaysOnePodOnly(t *testing.T) {
	s := newSteps()
	s.on["sync"] = func(ctx context.Context, w pod.Work) (pod.Outcome, error) {
		if w.Pod.Name == "hung" {
			<-ctx.Done()
		}
		return pod.Outcome{}, nil
	}
	p := run(t, s)
	p.Handle(pod.Change{Op: pod.Add, Pod: named("hung")}, nil)
	s.expect(t, "sync hung")
	p.Handle(pod.Change{Op: pod.Add, Pod: named("b")}, nil)
	s.expect(t, "sync b")
}

// A pod that is added again while it stops, such as a static pod whose manifest is written
// again, stops and starts again.
func TestPodAddedWhileStoppingStartsAgain(t *testing.T) {
	s := newSteps()
	release := make(chan struct{})
	s.on["stop"] = func(context.Context, pod.Work) (pod.Outcome, error) { <-release; return pod.Outcome{}, nil }
	s.on["remove"] = func(_ context.Context, w pod.Work) (pod.Outcome, error) {
		if !w.Returns {
			t.Error("Remove: Returns is false, want true")
		}
		return pod.Outcome{}, nil
	}
	p := run(t, s)
	p.Handle(pod.Change{Op: pod.Add, Pod: named("a")}, nil)
	s.expect(t, "sync a")
	p.Handle(pod.Change{Op: pod.Remove, Pod: named("a")}, nil)
	s.expect(t, "stop a")
	p.Handle(pod.Change{Op: pod.Add, Pod: named("a")}, nil)
	close(release)
	s.expect(t, "finish a", "remove a", "sync a")
}

// A pod that is added again while it stops does not start if it is removed again or the pool
// drains.
func TestPodAddedWhileStoppingDoesNotStart(t *testing.T) {
	for name, end := range map[string]func(p *Pool){
		"removed_again": func(p *Pool) { p.Handle(pod.Change{Op: pod.Remove, Pod: named("a")}, nil) },
		"pool_drains":   func(p *Pool) { go func() { _ = p.Drain(context.Background()) }() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSteps()
			release := make(chan struct{})
			s.on["stop"] = func(context.Context, pod.Work) (pod.Outcome, error) { <-release; return pod.Outcome{}, nil }
			p := run(t, s)
			p.Handle(pod.Change{Op: pod.Add, Pod: named("a")}, nil)
			s.expect(t, "sync a")
			p.Handle(pod.Change{Op: pod.Remove, Pod: named("a")}, nil)
			s.expect(t, "stop a")
			p.Handle(pod.Change{Op: pod.Add, Pod: named("a")}, nil)
			end(p)
			if name == "pool_drains" {
				waitFor(t, func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.draining })
			}
			close(release)
			s.expect(t, "finish a", "remove a")
			p.waitGone(t, "a")
		})
	}
}

// waitFor polls until the condition is true.
func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	for range 5000 {
		if is() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("timed out waiting for the condition")
}
