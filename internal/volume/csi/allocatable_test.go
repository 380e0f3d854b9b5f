package csi

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"swiftlet/test/poll"
)

// TestAllocatableIsUpdatedPeriodically: the volume limit of a driver may change.
func TestAllocatableIsUpdatedPeriodically(t *testing.T) {
	f, d := newFixture(t), newDriver(t)
	f.known.Spec.NodeAllocatableUpdatePeriodSeconds = to(int64(10))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	most := func() int32 {
		_, node := f.objects(t)
		if len(node.Spec.Drivers) != 1 || node.Spec.Drivers[0].Allocatable == nil {
			return 0
		}
		return *node.Spec.Drivers[0].Allocatable.Count
	}
	if f.clock.HasWaiters() {
		t.Error("a timer runs without a driver")
	}
	f.register(t, d)
	if most() != 0 {
		t.Fatalf("the limit is %d", most())
	}
	for _, n := range []int64{9, 5} {
		d.mu.Lock()
		d.info = &csi.NodeGetInfoResponse{NodeId: "id", MaxVolumesPerNode: n}
		d.mu.Unlock()
		poll.Until(t, "a timer", f.clock.HasWaiters)
		f.clock.Step(9 * time.Second)
		f.clock.Step(time.Second)
		poll.Until(t, "the CSINode follows", func() bool { return most() == int32(n) })
	}
	f.Deregister(d.plugin())
	poll.Until(t, "no timer", func() bool { return !f.clock.HasWaiters() })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A period of centuries must not become a negative one, after which the limit would be updated without a pause.
func TestLongUpdatePeriod(t *testing.T) {
	f := newFixture(t)
	for _, seconds := range []int64{10_000_000_000, math.MaxInt64} {
		f.known.Spec.NodeAllocatableUpdatePeriodSeconds = &seconds
		if period := f.updatePeriod(t.Context(), driverName); period < time.Hour {
			t.Errorf("%d seconds are %v", seconds, period)
		}
	}
}
