package metrics

import (
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	testclock "k8s.io/utils/clock/testing"
)

// BenchmarkGather encodes what /metrics of a busy agent has of its own.
func BenchmarkGather(b *testing.B) {
	m, err := New(testclock.NewFakePassiveClock(epoch), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	m.Worker()
	m.Status()
	m.Image()
	called, _ := m.CRI()
	for i := range 20 {
		called(fmt.Sprint("method", i), time.Millisecond, nil)
	}
	b.ReportAllocs()
	for b.Loop() {
		families, err := m.registry.Gather()
		if err != nil {
			b.Fatal(err)
		}
		encoder := expfmt.NewEncoder(io.Discard, expfmt.NewFormat(expfmt.TypeTextPlain))
		for _, f := range families {
			if err := encoder.Encode(f); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkCall records one call of the runtime.
func BenchmarkCall(b *testing.B) {
	m, err := New(testclock.NewFakePassiveClock(epoch), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	called, _ := m.CRI()
	b.ReportAllocs()
	for b.Loop() {
		called("RunPodSandbox", time.Millisecond, nil)
	}
}
