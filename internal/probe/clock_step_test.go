package probe

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/test/stepclock"
)

// The initial delay of a probe is neither cut short nor extended when the wall clock is set.
func TestInitialDelayAcrossClockStep(t *testing.T) {
	for name, step := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := &stepclock.Clock{}
				s := &script{began: time.Now()}
				p, err := New(Config{}, Deps{Checker: s, Events: &eventLog{}, Clock: clock, Log: slog.New(slog.DiscardHandler), Random: func() float64 { return 0 }, Cores: 2})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); _ = p.Run(ctx) }()
				clock.Step(step) // before the container starts: it is not one of an earlier kubelet
				time.Sleep(time.Second)
				probe := command("l=+", 10, 3)
				probe.InitialDelaySeconds = 30
				of, seen := podWith(v1.Container{LivenessProbe: probe})
				seen.Containers[0].StartedAt = clock.Wall()
				p.Watch(of, seen, "", nil, false)
				clock.Step(step)
				p.heapChanged.Notify()
				advance(65 * time.Second)
				if got, want := strings.Join(s.seen(), " "), "l@31s l@41s l@51s l@1m1s"; got != want {
					t.Errorf("ran %s, want %s", got, want)
				}
				cancel()
				<-done
			})
		})
	}
}
