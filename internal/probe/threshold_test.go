package probe

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

func TestSuccessThresholdCountsAtThePeriod(t *testing.T) {
	for name, tt := range map[string]struct {
		startup, readiness string
		ready              time.Duration // when the third success in a row is due
		want               string
		events             int
	}{
		"first_run_succeeds":          {"", "r=+", 10 * time.Second, "r@0s r@5s r@10s", 0},
		"third_quick_run_succeeds":    {"", "r=--+", 10750 * time.Millisecond, "r@0s r@250ms r@750ms r@5.75s r@10.75s", 0},
		"after_the_startup_probe":     {"s=-+", "r=-+", 10500 * time.Millisecond, "s@0s s@250ms r@250ms r@500ms r@5.5s r@10.5s", 1},
		"failure_starts_a_new_count":  {"", "r=+-+", 20 * time.Second, "r@0s r@5s r@10s r@15s r@20s", 1},
		"error_between_two_successes": {"", "r=+?+", 15 * time.Second, "r@0s r@5s r@10s r@15s", 1},
	} {
		t.Run(name, func(t *testing.T) {
			withProber(t, func(p *Prober, s *script, e *eventLog) {
				c := v1.Container{ReadinessProbe: command(tt.readiness, 5, 3)}
				c.ReadinessProbe.SuccessThreshold = 3
				if tt.startup != "" {
					c.StartupProbe = command(tt.startup, 2, 5)
				}
				of, seen := podWith(c)
				p.Watch(of, seen, "", nil, false)
				advance(tt.ready - time.Millisecond)
				if got := p.Health("id").Readiness; got != pod.Failed {
					t.Errorf("readiness before the third success: %v, runs %v", got, s.seen())
				}
				advance(2 * time.Millisecond)
				if got := p.Health("id").Readiness; got != pod.Passed {
					t.Errorf("readiness after the third success: %v", got)
				}
				if got := strings.Join(s.seen(), " "); got != tt.want {
					t.Errorf("ran %s, want %s", got, tt.want)
				}
				if n := len(e.lines()); n != tt.events {
					t.Errorf("%d events, want %d: %q", n, tt.events, e.lines())
				}
			})
		})
	}
}
