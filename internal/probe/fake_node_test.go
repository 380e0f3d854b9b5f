package probe

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
)

// fakeNode is a node with many probed containers. As Checker and Execer it makes each run take
// the configured duration of the container, and records the runs.
type fakeNode struct {
	prober *Prober
	stop   func() // stops the Prober and waits for it
	events eventLog
	began  time.Time

	mu         sync.Mutex
	duration   map[string]time.Duration
	runs       map[string][]time.Duration // when runs began, by container
	running    int
	maxRunning int // commands that ran at the same time
}

func (f *fakeNode) Check(ctx context.Context, t Target) Outcome {
	if t.Probe.Exec != nil {
		return NewChecks(f).Check(ctx, t)
	}
	f.run(t.ContainerID, 0)
	return passed("")
}

func (f *fakeNode) ExecSync(ctx context.Context, id string, _ []string, timeout time.Duration) (cri.ExecResult, error) {
	end, over := time.NewTimer(f.run(id, 1)), time.NewTimer(timeout)
	defer f.end()
	defer end.Stop()
	defer over.Stop()
	select {
	case <-end.C:
		return cri.ExecResult{}, nil
	case <-over.C:
		return cri.ExecResult{}, context.DeadlineExceeded
	case <-ctx.Done():
		return cri.ExecResult{}, ctx.Err()
	}
}

// set sets the duration of each run of a container.
func (f *fakeNode) set(id string, duration time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.duration[id] = duration
}

// run records a run and returns how long it takes.
func (f *fakeNode) run(id string, commands int) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs[id] = append(f.runs[id], time.Since(f.began).Round(time.Millisecond))
	f.running += commands
	f.maxRunning = max(f.maxRunning, f.running)
	return f.duration[id]
}

func (f *fakeNode) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running--
}

// ran returns when the runs of a container began.
func (f *fakeNode) ran(id string) []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]time.Duration(nil), f.runs[id]...)
}

// commands returns how many run now, and the maximum that ran concurrently.
func (f *fakeNode) commands() (now, maxRunning int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running, f.maxRunning
}

// watch adds a pod with one container, both named id.
func (f *fakeNode) watch(id string, started time.Time, published *v1.PodStatus, c v1.Container) {
	c.Name = id
	of := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: id, UID: types.UID(id)}, Spec: v1.PodSpec{Containers: []v1.Container{c}}}
	seen := &pod.Observed{Containers: []pod.Container{{ID: id, Name: id, State: pod.Running, StartedAt: started}}}
	f.prober.Watch(of, seen, "", published, false)
}

// withFakeNode runs a Prober on a machine of two cores in virtual time. The Prober starts an hour
// into that time, so that containers can be older.
func withFakeNode(t *testing.T, random func() float64, do func(f *fakeNode)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		f := &fakeNode{began: time.Now(), duration: map[string]time.Duration{}, runs: map[string][]time.Duration{}}
		var err error
		f.prober, err = New(Config{}, Deps{Checker: f, Events: &f.events, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler), Random: random, Cores: 2})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var parts sync.WaitGroup
		parts.Go(func() { _ = f.prober.Run(ctx) })
		parts.Go(func() { drain(ctx, f.prober) })
		f.stop = func() { cancel(); parts.Wait() }
		defer f.stop()
		do(f)
	})
}

// drain receives the changes, as the sync loop does.
func drain(ctx context.Context, p *Prober) {
	for {
		select {
		case <-p.Changes():
		case <-ctx.Done():
			return
		}
	}
}

// evenly returns 0/n, 1/n, 2/n and so on.
func evenly(n int) func() float64 {
	next := -1
	return func() float64 {
		next++
		return float64(next%n) / float64(n)
	}
}

func execProbe(period, timeout int32) *v1.Probe {
	p := command("x=+", period, 1)
	p.TimeoutSeconds = timeout
	return p
}

func tcpProbe(period int32) *v1.Probe {
	return &v1.Probe{ProbeHandler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(80)}}, PeriodSeconds: period, TimeoutSeconds: 1}
}

func name(i int) string { return fmt.Sprintf("c%03d", i) }
