package status

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/contain"
)

// A panic while the status of a pod is written is retried as a failed write.
func TestPanicOfWriteIsRetried(t *testing.T) {
	run(t, func(b *bench) {
		b.server.fail(errPanic)
		b.Set(aPod("a"), phase(v1.PodRunning))
		time.Sleep(time.Second)
		b.expect("a a Running")
	})
}

// A panic while the status of a pod is derived is an error of its worker. The publisher serves all pods, and must
// not stay locked.
func TestPanicOfChangeLeavesPublisherUnlocked(t *testing.T) {
	run(t, func(b *bench) {
		b.meters.Changed = func(p *v1.Pod, _, _ *v1.PodStatus) {
			if p.Name == "a" {
				panic("broken status")
			}
		}
		for _, step := range []func(){
			func() { b.Set(aPod("a"), phase(v1.PodRunning)) },
			func() { b.Finish(aPod("a")) },
		} {
			if err := contain.Call(func() error { step(); return nil }); err == nil {
				t.Error("no panic")
			}
			if !b.mu.TryLock() {
				t.Fatal("the publisher is locked")
			}
			b.mu.Unlock()
		}
		b.Set(aPod("b"), phase(v1.PodRunning))
		b.expect("b b Running")
	})
}
