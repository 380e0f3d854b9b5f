package probe

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
)

// countingChecker passes at once and counts the runs.
type countingChecker struct{ runs atomic.Int64 }

func (c *countingChecker) Check(context.Context, Target) Outcome {
	c.runs.Add(1)
	return passed("")
}

// BenchmarkRun measures the overhead of one run on a node with 500 probes: at one run a second
// each, 500 times this is the share of a core.
func BenchmarkRun(b *testing.B) {
	checker := &countingChecker{}
	p, err := New(Config{}, Deps{Checker: checker, Events: &eventLog{}, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler), Random: func() float64 { return 0 }, Cores: 2})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 500 {
		c := v1.Container{Name: "c", ReadinessProbe: command("r=+", 1, 3)}
		of := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i))}, Spec: v1.PodSpec{Containers: []v1.Container{c}}}
		p.Watch(of, &pod.Observed{Containers: []pod.Container{{ID: fmt.Sprint(i), Name: "c", State: pod.Running}}}, "", nil, false)
	}
	b.ResetTimer()
	for range b.N {
		// The due probes run as in Run; then all are made due again.
		due, _ := p.next()
		for _, a := range due {
			p.runProbe(b.Context(), a)
		}
		p.mu.Lock()
		for _, s := range p.due {
			s.at = time.Time{}
		}
		p.mu.Unlock()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(max(checker.runs.Load(), 1)), "ns/run")
}
