package probe

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
)

// script is a Checker whose outcomes are in the probe's command: "name=+!+--?#" has one sign per
// run; the last one repeats.
type script struct {
	mu    sync.Mutex
	ran   []string
	began time.Time
}

func (s *script) Check(_ context.Context, t Target) Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, signs, _ := strings.Cut(t.Probe.Exec.Command[0], "=")
	n := 0
	for _, a := range s.ran {
		if strings.HasPrefix(a, name+"@") {
			n++
		}
	}
	s.ran = append(s.ran, fmt.Sprintf("%s@%v", name, time.Since(s.began).Truncate(time.Millisecond)))
	switch signs[min(n, len(signs)-1)] {
	case '#':
		panic("broken check")
	case '+':
		return passed("")
	case '!':
		return Outcome{Result: pod.Passed, Warning: true, Output: "well"}
	case '-':
		return failed("no")
	}
	return errored(context.DeadlineExceeded)
}

// seen lists the runs so far.
func (s *script) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ran)
}

type eventLog struct {
	mu  sync.Mutex
	all []string
}

func (e *eventLog) Eventf(_ apiruntime.Object, _, reason, format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, reason+" "+fmt.Sprintf(format, args...))
}

func (e *eventLog) lines() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

func command(script string, period, failures int32) *v1.Probe {
	return &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{script}}},
		PeriodSeconds: period, TimeoutSeconds: 1, FailureThreshold: failures, SuccessThreshold: 1}
}

func podWith(c v1.Container) (*v1.Pod, *pod.Observed) {
	c.Name = "c"
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}, Spec: v1.PodSpec{Containers: []v1.Container{c}}}
	return p, &pod.Observed{Containers: []pod.Container{{ID: "id", Name: "c", State: pod.Running, StartedAt: time.Now()}}}
}

// withProber runs a Prober in virtual time and calls f.
func withProber(t *testing.T, f func(*Prober, *script, *eventLog)) {
	synctest.Test(t, func(t *testing.T) {
		s, e := &script{began: time.Now()}, &eventLog{}
		p, err := New(Config{}, Deps{Checker: s, Events: e, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler), Random: func() float64 { return 0 }, Cores: 2})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = p.Run(ctx) }()
		go func() { // receive as the sync loop does
			for {
				select {
				case <-p.Changes():
				case <-ctx.Done():
					return
				}
			}
		}()
		f(p, s, e)
		cancel()
		<-done
	})
}

func advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestReadinessRunsAtOnceAndThenEveryPeriod(t *testing.T) {
	withProber(t, func(p *Prober, s *script, _ *eventLog) {
		of, seen := podWith(v1.Container{ReadinessProbe: command("r=+", 10, 3)})
		p.Watch(of, seen, "", nil, false)
		advance(time.Millisecond)
		if got := p.Health("id").Readiness; got != pod.Passed {
			t.Fatalf("after the first run: %v", got)
		}
		advance(25 * time.Second)
		if got, want := strings.Join(s.seen(), " "), "r@0s r@10s r@20s"; got != want {
			t.Errorf("ran %s, want %s", got, want)
		}
	})
}

func TestStartingContainerHasEarlyRuns(t *testing.T) {
	withProber(t, func(p *Prober, s *script, e *eventLog) {
		of, seen := podWith(v1.Container{ReadinessProbe: command("r=---+", 10, 3)})
		p.Watch(of, seen, "", nil, false)
		advance(2 * time.Second)
		if got, want := strings.Join(s.seen(), " "), "r@0s r@250ms r@750ms r@1.75s"; got != want {
			t.Errorf("ran %s, want %s", got, want)
		}
		if got := p.Health("id").Readiness; got != pod.Passed {
			t.Errorf("readiness %v", got)
		}
		if len(e.lines()) > 0 {
			t.Errorf("events for a starting container: %q", e.lines())
		}
		advance(30 * time.Second)
		if n := len(s.seen()); n != 7 {
			t.Errorf("%d runs in all, want one more each period: %v", n, s.seen())
		}
	})
}

func TestFailureOfEarlyRunDoesNotCount(t *testing.T) {
	withProber(t, func(p *Prober, s *script, e *eventLog) {
		of, seen := podWith(v1.Container{StartupProbe: command("s=-", 2, 2)})
		p.Watch(of, seen, "", nil, false)
		advance(1900 * time.Millisecond)
		if got := p.Health("id").Startup; got != pod.ProbeUnknown || len(e.lines()) != 1 || len(s.seen()) < 3 {
			t.Fatalf("within the first period: %v, events %q, runs %v", got, e.lines(), s.seen())
		}
		advance(200 * time.Millisecond)
		if got := p.Health("id").Startup; got != pod.Failed || len(e.lines()) != 2 {
			t.Fatalf("after the second regular run: %v, events %q, runs %v", got, e.lines(), s.seen())
		}
	})
}

func TestThresholds(t *testing.T) {
	withProber(t, func(p *Prober, _ *script, e *eventLog) {
		of, seen := podWith(v1.Container{LivenessProbe: command("l=+-+--+", 1, 2)})
		p.Watch(of, seen, "", nil, false)
		for i, want := range []pod.Result{pod.Passed, pod.Passed, pod.Passed, pod.Passed, pod.Failed, pod.Failed} {
			advance(time.Millisecond)
			if got := p.Health("id").Liveness; got != want {
				t.Fatalf("after run %d: %v, want %v", i+1, got, want)
			}
			advance(time.Second - time.Millisecond)
		}
		if len(e.lines()) != 3 || e.lines()[0] != "Unhealthy Liveness probe failed: no" {
			t.Errorf("events %q", e.lines())
		}
	})
}

func TestWarningIsReported(t *testing.T) {
	withProber(t, func(p *Prober, _ *script, e *eventLog) {
		of, seen := podWith(v1.Container{LivenessProbe: command("l=!", 10, 1)})
		p.Watch(of, seen, "", nil, false)
		advance(time.Millisecond)
		if got := p.Health("id").Liveness; got != pod.Passed {
			t.Errorf("liveness %v, want passed", got)
		}
		if want := []string{"ProbeWarning Liveness probe warning: well"}; !slices.Equal(e.lines(), want) {
			t.Errorf("events %q, want %q", e.lines(), want)
		}
	})
}

func TestOtherProbesWaitForStartup(t *testing.T) {
	withProber(t, func(p *Prober, s *script, _ *eventLog) {
		of, seen := podWith(v1.Container{StartupProbe: command("s=--+", 2, 5), LivenessProbe: command("l=+", 10, 1), ReadinessProbe: command("r=+", 10, 1)})
		p.Watch(of, seen, "", nil, false)
		advance(700 * time.Millisecond)
		if h := p.Health("id"); h.Startup != pod.ProbeUnknown || h.Readiness != pod.Failed {
			t.Fatalf("before it started: %+v", h)
		}
		advance(100 * time.Millisecond)
		if h := p.Health("id"); h.Startup != pod.Passed || h.Readiness != pod.Passed {
			t.Fatalf("after it started: %+v, runs %v", h, s.seen())
		}
		advance(30 * time.Second)
		if n := strings.Count(strings.Join(s.seen(), " "), "s@"); n != 3 {
			t.Errorf("startup probe ran %d times, want 3", n)
		}
	})
}

func TestInitialDelayAppliesAfterStartupProbe(t *testing.T) {
	tests := map[string]struct {
		delay int32
		want  string
	}{
		"delay longer than startup":  {20, "boot@0s boot@250ms l@20s r@20s l@30s r@30s"},
		"delay shorter than startup": {0, "boot@0s boot@250ms l@250ms r@250ms l@10.25s r@10.25s l@20.25s r@20.25s l@30.25s r@30.25s"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			withProber(t, func(p *Prober, s *script, _ *eventLog) {
				of, seen := podWith(v1.Container{StartupProbe: command("boot=-+", 2, 5), LivenessProbe: command("l=+", 10, 1), ReadinessProbe: command("r=+", 10, 1)})
				c := &of.Spec.Containers[0]
				c.LivenessProbe.InitialDelaySeconds, c.ReadinessProbe.InitialDelaySeconds = tt.delay, tt.delay
				p.Watch(of, seen, "", nil, false)
				advance(31 * time.Second)
				ran := s.seen()
				slices.SortStableFunc(ran, inOrder)
				if got := strings.Join(ran, " "); got != tt.want {
					t.Errorf("ran %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// inOrder orders runs by time, then name.
func inOrder(a, b string) int {
	nameA, atA, _ := strings.Cut(a, "@")
	nameB, atB, _ := strings.Cut(b, "@")
	if atA == atB {
		return strings.Compare(nameA, nameB)
	}
	whenA, _ := time.ParseDuration(atA)
	whenB, _ := time.ParseDuration(atB)
	return cmp.Compare(whenA, whenB)
}

func TestCheckErrorDoesNotCount(t *testing.T) {
	withProber(t, func(p *Prober, _ *script, e *eventLog) {
		of, seen := podWith(v1.Container{LivenessProbe: command("l=-?-", 1, 2)})
		p.Watch(of, seen, "", nil, false)
		advance(1500 * time.Millisecond)
		if got := p.Health("id").Liveness; got != pod.Passed {
			t.Fatalf("after a failure and an error: %v", got)
		}
		if !strings.Contains(strings.Join(e.lines(), "\n"), "Liveness probe errored and resulted in unknown state") {
			t.Errorf("events %q", e.lines())
		}
	})
}

func TestReadyContainerStaysReadyAcrossRestart(t *testing.T) {
	withProber(t, func(p *Prober, _ *script, _ *eventLog) {
		of, seen := podWith(v1.Container{ReadinessProbe: command("r=?", 10, 3)})
		published := &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "c", ContainerID: "containerd://id", Ready: true}}}
		p.Watch(of, seen, "", published, false)
		if got := p.Health("id").Readiness; got != pod.Passed {
			t.Errorf("same instance: %v", got)
		}
		seen.Containers[0].ID = "other"
		p.Watch(of, seen, "", published, false)
		if got := p.Health("other").Readiness; got != pod.Failed {
			t.Errorf("another instance: %v", got)
		}
	})
}

func TestProbesEndWithTheirContainer(t *testing.T) {
	withProber(t, func(p *Prober, s *script, _ *eventLog) {
		of, seen := podWith(v1.Container{ReadinessProbe: command("r=+", 1, 3), LivenessProbe: command("l=+", 1, 3)})
		p.Watch(of, seen, "", nil, false)
		advance(time.Millisecond)
		p.Watch(of, seen, "", nil, true) // stopping: only readiness still runs
		advance(2500 * time.Millisecond)
		p.Forget("u")
		ran := len(s.seen())
		advance(time.Minute)
		if len(s.seen()) != ran {
			t.Errorf("ran after Forget: %v", s.seen()[ran:])
		}
		if n := strings.Count(strings.Join(s.seen(), " "), "l@"); n != 1 {
			t.Errorf("liveness ran %d times, want once: %v", n, s.seen())
		}
	})
}

// A container that has started stays so while its pod stops: it is ready as long as its readiness probe passes.
func TestStartedContainerStaysStartedWhilePodStops(t *testing.T) {
	for name, published := range map[string]*v1.PodStatus{"same agent": nil, "later agent": shown(true, true)} {
		t.Run(name, func(t *testing.T) {
			withProber(t, func(p *Prober, s *script, _ *eventLog) {
				of, seen := podWith(v1.Container{StartupProbe: command("s=+", 1, 3), ReadinessProbe: command("r=+", 1, 3)})
				if published == nil {
					p.Watch(of, seen, "", nil, false)
					advance(time.Second)
				}
				p.Watch(of, seen, "", published, true)
				advance(time.Second)
				if got := p.Health("id"); got.Startup != pod.Passed || got.Readiness != pod.Passed {
					t.Errorf("startup %v, readiness %v", got.Startup, got.Readiness)
				}
			})
		})
	}
}
