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

// script answers probes by the command they name: "name=+!+--?" gives one sign an asking,
// the last one for ever.
type script struct {
	mu    sync.Mutex
	asked []string
	began time.Time
}

func (s *script) Check(_ context.Context, t Target) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, signs, _ := strings.Cut(t.Probe.Exec.Command[0], "=")
	n := 0
	for _, a := range s.asked {
		if strings.HasPrefix(a, name+"@") {
			n++
		}
	}
	s.asked = append(s.asked, fmt.Sprintf("%s@%v", name, time.Since(s.began).Truncate(time.Millisecond)))
	switch signs[min(n, len(signs)-1)] {
	case '+':
		return passed("")
	case '!':
		return Answer{Result: pod.Passed, Doubt: true, Output: "well"}
	case '-':
		return failed("no")
	}
	return unsure(context.DeadlineExceeded)
}

// seen is what was asked so far.
func (s *script) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
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

// probing runs a prober in a bubble of fake time and hands it to f.
func probing(t *testing.T, f func(*Prober, *script, *eventLog)) {
	synctest.Test(t, func(t *testing.T) {
		s, e := &script{began: time.Now()}, &eventLog{}
		p, err := New(Deps{Checker: s, Events: e, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler), Random: func() float64 { return 0 }, Cores: 2})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = p.Run(ctx) }()
		go func() { // somebody listens, as the loop does
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

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestReadinessIsAskedAtOnceAndThenEveryPeriod(t *testing.T) {
	probing(t, func(p *Prober, s *script, _ *eventLog) {
		of, seen := podWith(v1.Container{ReadinessProbe: command("r=+", 10, 3)})
		p.Watch(of, seen, "", nil, false)
		after(time.Millisecond)
		if got := p.Health("id").Readiness; got != pod.Passed {
			t.Fatalf("after the first answer: %v", got)
		}
		after(25 * time.Second)
		if got, want := strings.Join(s.seen(), " "), "r@0s r@10s r@20s"; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
	})
}

func TestAStartingContainerIsAskedInQuickSuccession(t *testing.T) {
	probing(t, func(p *Prober, s *script, e *eventLog) {
		of, seen := podWith(v1.Container{ReadinessProbe: command("r=---+", 10, 3)})
		p.Watch(of, seen, "", nil, false)
		after(2 * time.Second)
		if got, want := strings.Join(s.seen(), " "), "r@0s r@250ms r@750ms r@1.75s"; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
		if got := p.Health("id").Readiness; got != pod.Passed {
			t.Errorf("readiness %v", got)
		}
		if len(e.lines()) > 0 {
			t.Errorf("the user was told of a container that was only starting: %q", e.lines())
		}
		after(30 * time.Second)
		if n := len(s.seen()); n != 7 {
			t.Errorf("asked %d times in all, want one more each period: %v", n, s.seen())
		}
	})
}

func TestAFailureOutOfTurnCountsForNothing(t *testing.T) {
	probing(t, func(p *Prober, s *script, e *eventLog) {
		of, seen := podWith(v1.Container{StartupProbe: command("s=-", 2, 2)})
		p.Watch(of, seen, "", nil, false)
		after(1900 * time.Millisecond)
		if got := p.Health("id").Startup; got != pod.Unsure || len(e.lines()) != 1 || len(s.seen()) < 3 {
			t.Fatalf("within the first period: %v, events %q, asked %v", got, e.lines(), s.seen())
		}
		after(200 * time.Millisecond)
		if got := p.Health("id").Startup; got != pod.Failed || len(e.lines()) != 2 {
			t.Fatalf("after the second regular asking: %v, events %q, asked %v", got, e.lines(), s.seen())
		}
	})
}

func TestThresholds(t *testing.T) {
	probing(t, func(p *Prober, _ *script, e *eventLog) {
		of, seen := podWith(v1.Container{LivenessProbe: command("l=+-+--+", 1, 2)})
		p.Watch(of, seen, "", nil, false)
		for i, want := range []pod.Result{pod.Passed, pod.Passed, pod.Passed, pod.Passed, pod.Failed, pod.Failed} {
			after(time.Millisecond)
			if got := p.Health("id").Liveness; got != want {
				t.Fatalf("after answer %d: %v, want %v", i+1, got, want)
			}
			after(time.Second - time.Millisecond)
		}
		if len(e.lines()) != 3 || e.lines()[0] != "Unhealthy Liveness probe failed: no" {
			t.Errorf("events %q", e.lines())
		}
	})
}

func TestDoubtIsTold(t *testing.T) {
	probing(t, func(p *Prober, _ *script, e *eventLog) {
		of, seen := podWith(v1.Container{LivenessProbe: command("l=!", 10, 1)})
		p.Watch(of, seen, "", nil, false)
		after(time.Millisecond)
		if got := p.Health("id").Liveness; got != pod.Passed {
			t.Errorf("it is %v, want passed", got)
		}
		if want := []string{"ProbeWarning Liveness probe warning: well"}; !slices.Equal(e.lines(), want) {
			t.Errorf("events %q, want %q", e.lines(), want)
		}
	})
}

func TestStartupGoesFirst(t *testing.T) {
	probing(t, func(p *Prober, s *script, _ *eventLog) {
		of, seen := podWith(v1.Container{StartupProbe: command("s=--+", 2, 5), LivenessProbe: command("l=+", 10, 1), ReadinessProbe: command("r=+", 10, 1)})
		p.Watch(of, seen, "", nil, false)
		after(700 * time.Millisecond)
		if h := p.Health("id"); h.Startup != pod.Unsure || h.Readiness != pod.Failed {
			t.Fatalf("before it started: %+v", h)
		}
		after(100 * time.Millisecond)
		if h := p.Health("id"); h.Startup != pod.Passed || h.Readiness != pod.Passed {
			t.Fatalf("once it started: %+v, asked %v", h, s.seen())
		}
		after(30 * time.Second)
		if n := strings.Count(strings.Join(s.seen(), " "), "s@"); n != 3 {
			t.Errorf("startup probe asked %d times, want 3", n)
		}
	})
}

func TestTheInitialDelayHoldsAfterTheStartupProbeToo(t *testing.T) {
	tests := map[string]struct {
		delay int32
		want  string
	}{
		"longer than the start":  {20, "boot@0s boot@250ms l@20s r@20s l@30s r@30s"},
		"shorter than the start": {0, "boot@0s boot@250ms l@250ms r@250ms l@10.25s r@10.25s l@20.25s r@20.25s l@30.25s r@30.25s"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			probing(t, func(p *Prober, s *script, _ *eventLog) {
				of, seen := podWith(v1.Container{StartupProbe: command("boot=-+", 2, 5), LivenessProbe: command("l=+", 10, 1), ReadinessProbe: command("r=+", 10, 1)})
				c := &of.Spec.Containers[0]
				c.LivenessProbe.InitialDelaySeconds, c.ReadinessProbe.InitialDelaySeconds = tt.delay, tt.delay
				p.Watch(of, seen, "", nil, false)
				after(31 * time.Second)
				asked := s.seen()
				slices.SortStableFunc(asked, inOrder)
				if got := strings.Join(asked, " "); got != tt.want {
					t.Errorf("asked %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// inOrder orders what was asked at the same time by name.
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

func TestAnAskingThatFailsCountsForNothing(t *testing.T) {
	probing(t, func(p *Prober, _ *script, e *eventLog) {
		of, seen := podWith(v1.Container{LivenessProbe: command("l=-?-", 1, 2)})
		p.Watch(of, seen, "", nil, false)
		after(1500 * time.Millisecond)
		if got := p.Health("id").Liveness; got != pod.Passed {
			t.Fatalf("after a failure and an error: %v", got)
		}
		if !strings.Contains(strings.Join(e.lines(), "\n"), "Liveness probe errored and resulted in unknown state") {
			t.Errorf("events %q", e.lines())
		}
	})
}

func TestAReadyContainerStaysReadyAcrossARestart(t *testing.T) {
	probing(t, func(p *Prober, _ *script, _ *eventLog) {
		of, seen := podWith(v1.Container{ReadinessProbe: command("r=?", 10, 3)})
		shown := &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "c", ContainerID: "containerd://id", Ready: true}}}
		p.Watch(of, seen, "", shown, false)
		if got := p.Health("id").Readiness; got != pod.Passed {
			t.Errorf("the same instance: %v", got)
		}
		seen.Containers[0].ID = "other"
		p.Watch(of, seen, "", shown, false)
		if got := p.Health("other").Readiness; got != pod.Failed {
			t.Errorf("another instance: %v", got)
		}
	})
}

func TestProbesEndWithTheirContainer(t *testing.T) {
	probing(t, func(p *Prober, s *script, _ *eventLog) {
		of, seen := podWith(v1.Container{ReadinessProbe: command("r=+", 1, 3), LivenessProbe: command("l=+", 1, 3)})
		p.Watch(of, seen, "", nil, false)
		after(time.Millisecond)
		p.Watch(of, seen, "", nil, true) // stopping: only readiness is still asked
		after(2500 * time.Millisecond)
		p.Forget("u")
		asked := len(s.seen())
		after(time.Minute)
		if len(s.seen()) != asked {
			t.Errorf("asked after the end: %v", s.seen()[asked:])
		}
		if n := strings.Count(strings.Join(s.seen(), " "), "l@"); n != 1 {
			t.Errorf("liveness asked %d times, want once: %v", n, s.seen())
		}
	})
}
