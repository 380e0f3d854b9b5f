package status

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// storedAs returns the pod as the API server has it.
func storedAs(p *v1.Pod, version string, s v1.PodStatus) *v1.Pod {
	p = p.DeepCopy()
	p.ResourceVersion, p.Status = version, s
	return p
}

func TestRestoredEtcdShowsOlderStatus(t *testing.T) {
	run(t, func(b *bench) {
		b.Set(aPod("a"), phase(v1.PodRunning))
		b.expect("a a Running") // makes version 101
		b.Relisted([]*v1.Pod{storedAs(aPod("a"), "50", phase(v1.PodPending))})
		time.Sleep(24 * time.Hour)
		b.expect("a a Running")
	})
}

func TestRelistWithoutChangeWritesNothing(t *testing.T) {
	run(t, func(b *bench) {
		b.Set(aPod("a"), phase(v1.PodRunning))
		b.expect("a a Running")
		mine, _ := b.Get("a")
		b.Relisted([]*v1.Pod{storedAs(aPod("a"), "101", mine)})
		time.Sleep(time.Hour)
		b.expect("")
	})
}

// An event from before the last write may arrive after the list.
func TestStaleEventAfterRelist(t *testing.T) {
	run(t, func(b *bench) {
		b.Relisted(nil)
		b.Set(aPod("a"), phase(v1.PodRunning))
		b.expect("a a Running")
		b.Reconcile(storedAs(aPod("a"), "99", phase(v1.PodPending)))
		time.Sleep(time.Hour)
		b.expect("")
	})
}

func TestRestoredEtcdShowsFinishedPod(t *testing.T) {
	run(t, func(b *bench) {
		b.Set(aPod("a"), phase(v1.PodSucceeded))
		b.Finish(aPod("a"))
		b.expect("a a Succeeded")
		b.Relisted([]*v1.Pod{storedAs(aPod("a"), "50", phase(v1.PodRunning))})
		b.expect("a a Succeeded")
	})
}

// Another component has written a terminal phase: the publisher does not revert it, and writes it again
// when the pod's worker has derived a status from it, while containers run.
func TestTerminalPhaseOfOtherComponent(t *testing.T) {
	for name, show := range map[string]func(b *bench, p *v1.Pod){
		"relisted": func(b *bench, p *v1.Pod) { b.Relisted([]*v1.Pod{p}) },
		"watched":  func(b *bench, p *v1.Pod) { b.Reconcile(p) },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(b *bench) {
				b.Set(aPod("a"), phase(v1.PodRunning))
				b.expect("a a Running")
				failed := storedAs(aPod("a"), "200", phase(v1.PodFailed))
				show(b, failed)
				time.Sleep(time.Hour)
				b.expect("")
				stopping := phase(v1.PodFailed)
				stopping.ContainerStatuses = []v1.ContainerStatus{{Name: "c", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}
				b.Set(failed, stopping)
				b.expect("a a Failed")
			})
		})
	}
}

func TestRestoredEtcdShowsDeletedPod(t *testing.T) {
	run(t, func(b *bench) {
		b.Set(aPod("a"), phase(v1.PodSucceeded))
		b.Finish(deleted(aPod("a")))
		b.expect("a a Succeeded, delete a a")
		mine, _ := b.Get("a")
		b.Relisted([]*v1.Pod{storedAs(deleted(aPod("a")), "50", mine)})
		b.expect("delete a a")
	})
}

// The deletion was requested after the backup: the restored API server does not have it.
func TestRestoredEtcdRevertsDeletion(t *testing.T) {
	run(t, func(b *bench) {
		b.Set(deleted(aPod("a")), phase(v1.PodRunning))
		b.expect("a a Running")
		mine, _ := b.Get("a")
		b.Relisted([]*v1.Pod{storedAs(aPod("a"), "50", mine)})
		b.Set(deleted(aPod("a")), phase(v1.PodFailed)) // by a step that began before
		b.Finish(aPod("a"))
		time.Sleep(time.Hour)
		b.expect("a a Failed")
	})
}

func TestRestoredEtcdShowsOlderMirror(t *testing.T) {
	run(t, func(b *bench) {
		static := aPod("s")
		static.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
		b.mirrors["s"] = mirrorOf(static, "m1")
		b.Set(static, phase(v1.PodRunning))
		b.expect("s m1 Running")
		b.mirrors["s"] = storedAs(b.mirrors["s"], "50", phase(v1.PodPending))
		b.Relisted([]*v1.Pod{static})
		b.expect("s m1 Running")
	})
}

// The backup reverts a resize.
func TestObservedGenerationFollowsRestoredEtcd(t *testing.T) {
	run(t, func(b *bench) {
		p := aPod("a")
		p.Generation = 2
		b.Set(p, phase(v1.PodRunning))
		b.expect("a a Running")
		p = storedAs(p, "50", phase(v1.PodRunning))
		p.Generation, p.Status.ObservedGeneration = 1, 1
		b.Relisted([]*v1.Pod{p})
		if got := b.Set(p, phase(v1.PodRunning)).ObservedGeneration; got != 1 {
			b.Errorf("observed generation %d, want 1 as the pod has", got)
		}
	})
}
