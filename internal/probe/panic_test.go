package probe

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// A check that panics is a run without a result: the probe keeps its result and runs again, and other
// probes are not affected.
func TestPanicOfCheckIsRunWithoutResult(t *testing.T) {
	withProber(t, func(p *Prober, s *script, e *eventLog) {
		of, seen := podWith(v1.Container{ReadinessProbe: command("r=+#+", 10, 1), LivenessProbe: command("l=+", 10, 1)})
		p.Watch(of, seen, "", nil, false)
		advance(15 * time.Second)
		if got := p.Health("id"); got.Readiness != pod.Passed || got.Liveness != pod.Passed {
			t.Errorf("after the panic: %+v", got)
		}
		advance(10 * time.Second)
		if got := strings.Count(strings.Join(s.seen(), " "), "r@"); got != 3 {
			t.Errorf("the probe ran %d times, want 3", got)
		}
		if lines := strings.Join(e.lines(), " "); !strings.Contains(lines, "panic: broken check") {
			t.Errorf("no event names the panic: %s", lines)
		}
	})
}
