package csi

import (
	"context"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"swiftlet/test/poll"
)

// TestAllocatableFollowsTheDriver: how many volumes a node can take may change, and a driver
// that says so is asked.
func TestAllocatableFollowsTheDriver(t *testing.T) {
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
		t.Error("something is waited for without a driver")
	}
	f.register(t, d)
	if most() != 0 {
		t.Fatalf("the node takes %d", most())
	}
	for _, n := range []int64{9, 5} {
		d.mu.Lock()
		d.info = &csi.NodeGetInfoResponse{NodeId: "id", MaxVolumesPerNode: n}
		d.mu.Unlock()
		poll.Until(t, "somebody waits", f.clock.HasWaiters)
		f.clock.Step(9 * time.Second)
		f.clock.Step(time.Second)
		poll.Until(t, "the CSINode follows", func() bool { return most() == int32(n) })
	}
	f.Deregister(d.plugin())
	poll.Until(t, "nobody waits any more", func() bool { return !f.clock.HasWaiters() })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
