package syncloop

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
	"swiftlet/test/stepclock"
)

// A step of the wall clock does not make the loop look stalled, and does not hide that it is.
func TestHealthAcrossClockSteps(t *testing.T) {
	for name, step := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clock stepclock.Clock
				block := make(chan struct{})
				n := &node{desired: map[types.UID]bool{}}
				snapshots := make(chan pod.Snapshot)
				loop, err := New(Deps{
					Snapshots: snapshots, Desired: n, Observer: observer{}, Workers: n, Admission: n,
					OnRelist:  func() { <-block },
					Housekeep: func(context.Context) {}, Clock: &clock, Log: slog.New(slog.DiscardHandler),
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- loop.Run(ctx) }()
				synctest.Wait()
				clock.Step(step)
				time.Sleep(time.Second)
				if err := loop.Healthy(); err != nil {
					t.Errorf("after the step: %v", err)
				}
				snapshots <- pod.Snapshot{Listed: true} // blocks the loop
				clock.Step(step)
				time.Sleep(3 * housekeepingPeriod)
				if loop.Healthy() == nil {
					t.Error("a stalled loop is healthy after the step")
				}
				close(block)
				cancel()
				<-done
			})
		})
	}
}
