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

// steps are the Steps of all pods, whose calls are seen, and can be held up or made to fail.
type steps struct {
	mu    sync.Mutex
	calls []string
	seen  chan string
	// on answers a call; nil means success at once.
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
			t.Fatalf("step %q did not come; all: %q", w, s.calls)
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
		left := p.left
		p.mu.Unlock()
		if !known {
			return
		}
		select {
		case <-left:
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatalf("pod %s is not gone", uid)
}

func TestLifeOfAPod(t *testing.T) {
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

func TestAPodThatEndsByItselfStaysUntilRemoved(t *testing.T) {
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

func TestDeleteInterruptsSync(t *testing.T) {
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

func TestAShorterGraceHurriesAStop(t *testing.T) {
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
	p.Handle(pod.Change{Op: pod.Delete, Pod: deleted("a", 60)}, nil) // longer: not listened to
	p.Handle(pod.Change{Op: pod.Delete, Pod: deleted("a", 0)}, nil)
	s.expect(t, "stop a 0", "finish a")
}

func TestAFailedStepIsTriedAgain(t *testing.T) {
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

// What a step lacked is there again: it does not wait for its next try, which is ten seconds
// away at last. One that did not fail is left alone.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSteps()
		s.on["sync"] = func(_ context.Context, w pod.Work) (pod.Outcome, error) {
			if w.Pod.Name == "troubled" {
				return pod.Outcome{}, errors.New("refused")
			}
			return pod.Outcome{}, nil
		}
		p := run(t, s)
		p.Handle(pod.Change{Op: pod.Add, Pod: named("well")}, nil)
		p.Handle(pod.Change{Op: pod.Add, Pod: named("troubled")}, nil)
		time.Sleep(time.Hour + time.Nanosecond)
		synctest.Wait()
		for len(s.seen) > 0 {
			<-s.seen
		}
		p.Retry()
		synctest.Wait()
		s.expect(t, "sync troubled")
		if len(s.seen) != 0 {
			t.Errorf("and %s", <-s.seen)
		}
		time.Sleep(firstRetry)
		synctest.Wait()
		s.expect(t, "sync troubled")
	})
}

func TestAdmissionRefusesBeforeAnythingRuns(t *testing.T) {
	s := newSteps()
	told := make(chan *pod.Failure, 1)
	s.on["finish"] = func(_ context.Context, w pod.Work) (pod.Outcome, error) { told <- w.Failure; return pod.Outcome{}, nil }
	p := run(t, s)
	p.Handle(pod.Change{Op: pod.Add, Pod: named("a")}, &pod.Failure{Reason: "OutOfcpu"})
	s.expect(t, "stop a", "finish a")
	if failure := <-told; failure == nil || failure.Reason != "OutOfcpu" {
		t.Errorf("finish was told %v", failure)
	}
}

func TestAStaticPodWaitsForTheLastOfItsName(t *testing.T) {
	static := func(uid types.UID) *v1.Pod {
		p := named("web")
		p.UID = uid
		p.Annotations = map[string]string{pod.AnnotationSource: string(pod.SourceFile)}
		return p
	}
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

func TestAnEvictedPodIsFinishedWhenItHasGivenAllBack(t *testing.T) {
	s := newSteps()
	release := make(chan struct{})
	s.on["finish"] = func(context.Context, pod.Work) (pod.Outcome, error) { <-release; return pod.Outcome{}, nil }
	p := run(t, s)
	p.Handle(pod.Change{Op: pod.Add, Pod: named("victim")}, nil)
	s.expect(t, "sync victim")
	finished, found := p.Finished("victim")
	if !found {
		t.Fatal("it is not known")
	}
	grace := int64(1)
	p.Evict("victim", pod.Failure{Reason: "Evicted"}, &grace)
	s.expect(t, "stop victim 1", "finish victim")
	select {
	case <-finished:
		t.Error("it is finished before it has given anything back")
	default:
	}
	close(release)
	<-finished
	if _, found := p.Finished("unknown"); found {
		t.Error("a pod is known that never was")
	}
}

func TestACriticalPodWaitsForThoseThatMakeRoom(t *testing.T) {
	s := newSteps()
	release := make(chan struct{})
	s.on["stop"] = func(context.Context, pod.Work) (pod.Outcome, error) { <-release; return pod.Outcome{}, nil }
	p := run(t, s)
	p.Handle(pod.Change{Op: pod.Add, Pod: named("victim")}, nil)
	s.expect(t, "sync victim")
	p.Evict("victim", pod.Failure{Reason: "Preempting"}, nil)
	p.Follow("critical", []types.UID{"victim", "unknown"})
	p.Handle(pod.Change{Op: pod.Add, Pod: named("critical")}, nil)
	s.expect(t, "stop victim")
	if active := p.Active(); len(active) != 1 || active[0].Name != "critical" {
		t.Errorf("active: %v", active)
	}
	close(release)
	got := []string{<-s.seen, <-s.seen}
	slices.Sort(got) // the victim is finished while the other begins
	if want := []string{"finish victim", "sync critical"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A rejected pod takes no room from the pods that come after it.
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

// A critical pod that runs is not held up by those that make room for it to grow, nor is
// anything of that remembered.
func TestACriticalPodGrows(t *testing.T) {
	s := newSteps()
	release := make(chan struct{})
	s.on["stop"] = func(context.Context, pod.Work) (pod.Outcome, error) { <-release; return pod.Outcome{}, nil }
	p := run(t, s)
	for _, name := range []string{"critical", "victim"} {
		p.Handle(pod.Change{Op: pod.Add, Pod: named(name)}, nil)
		s.expect(t, "sync "+name)
	}
	p.Evict("victim", pod.Failure{Reason: "Preempting"}, nil)
	p.Follow("critical", []types.UID{"victim"})
	s.expect(t, "stop victim")
	p.Handle(pod.Change{Op: pod.Update, Pod: named("critical")}, nil)
	s.expect(t, "sync critical")
	if active := p.Active(); len(active) != 1 || active[0].Name != "critical" {
		t.Errorf("active: %v", active)
	}
	if len(p.follows) != 0 {
		t.Errorf("remembered: %v", p.follows)
	}
	close(release)
	s.expect(t, "finish victim")
}

func TestALateContainerIsStopped(t *testing.T) {
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

func TestDrainRemovesEverything(t *testing.T) {
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

// One hung step holds up its own pod alone.
func TestAHungStepHarmsOnePod(t *testing.T) {
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

// A pod that is wanted again while it ends, as a static pod whose file is put back, ends
// and starts anew.
func TestWantedAgain(t *testing.T) {
	s := newSteps()
	release := make(chan struct{})
	s.on["stop"] = func(context.Context, pod.Work) (pod.Outcome, error) { <-release; return pod.Outcome{}, nil }
	s.on["remove"] = func(_ context.Context, w pod.Work) (pod.Outcome, error) {
		if !w.Returns {
			t.Error("the step that removes the pod does not know that it returns")
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

// A change of mind about that counts too, and so does the end of all pods.
func TestWantedAgainButNotFor(t *testing.T) {
	for name, end := range map[string]func(p *Pool){
		"removed": func(p *Pool) { p.Handle(pod.Change{Op: pod.Remove, Pod: named("a")}, nil) },
		"drained": func(p *Pool) { go func() { _ = p.Drain(context.Background()) }() },
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
			if name == "drained" {
				waitFor(t, func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.drained })
			}
			close(release)
			s.expect(t, "finish a", "remove a")
			p.waitGone(t, "a")
		})
	}
}

// waitFor waits for what must come true by itself.
func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	for range 5000 {
		if is() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("never")
}
