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

// counted answers at once and counts how often it was asked.
type counted struct{ asked atomic.Int64 }

func (c *counted) Check(context.Context, Target) Answer {
	c.asked.Add(1)
	return passed("")
}

// BenchmarkAsking shows what one asking costs beside the probing itself, on a node with 500
// probes: at one a second each, 500 times this is the share of a core.
func BenchmarkAsking(b *testing.B) {
	answers := &counted{}
	p, err := New(Deps{Checker: answers, Events: &eventLog{}, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler), Random: func() float64 { return 0 }, Cores: 2})
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
		// What is due is asked as Run does it; then all is made due again.
		due, _ := p.next()
		for _, a := range due {
			p.ask(b.Context(), a)
		}
		p.mu.Lock()
		for _, s := range p.due {
			s.at = time.Time{}
		}
		p.mu.Unlock()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(max(answers.asked.Load(), 1)), "ns/asking")
}
