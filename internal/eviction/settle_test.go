package eviction

import (
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

const mib = 1 << 20

// disks is a world with four pods and a threshold of 1 GiB on each disk.
func disks(t *testing.T, limits bool) *world {
	w := newWorld(t, Config{Thresholds: []Threshold{{Signal: NodeFsAvailable, Least: bytes("1Gi")}, {Signal: ImageFsAvailable, Least: bytes("1Gi")},
		{Signal: MemoryAvailable, Least: bytes("10")}}, Transition: time.Minute, Limits: limits})
	w.disk = 5000 * mib
	for _, name := range []string{"a", "b", "c", "d"} {
		w.add(using(name, 0, v1.ResourceMemory, ""), 1)
	}
	return w
}

// step has time pass with so much left, and looks. That many pods have been evicted by then.
func (w *world) step(t *testing.T, disk uint64, after time.Duration, want int) {
	t.Helper()
	w.disk = disk
	time.Sleep(after)
	if wait := w.finish(t); len(w.orders()) != want || wait > period {
		t.Errorf("with %d MiB left %d pods have gone, not %d; the next look is in %v", disk/mib, len(w.orders()), want, wait)
	}
}

// A runtime removes what a container wrote some seconds after the pod is gone. Nobody else goes
// meanwhile, unless the disk fills up further; and somebody does if that was not enough.
func TestADiskSettlesBeforeTheNextPodGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := disks(t, false)
		w.step(t, 900*mib, 0, 1)
		w.step(t, 900*mib, time.Second, 1) // it settles
		w.step(t, 900*mib-1, time.Second, 1)
		w.step(t, 850*mib, time.Second, 1) // others write a little
		w.step(t, 850*mib, 6*time.Second, 1)
		w.step(t, 850*mib, time.Second, 2) // that was not enough
		w.step(t, 850*mib, time.Second, 2)
		w.step(t, 750*mib, time.Second, 3) // it goes on
		w.step(t, 2000*mib, time.Second, 3)
	})
}

// What the evicted pod writes until it is gone is no reason for another to go.
func TestWhoWritesToTheEndIsTheOnlyOneToGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := disks(t, false)
		w.ends = 2 * time.Second
		time.AfterFunc(time.Second, func() { w.mu.Lock(); w.disk = 500 * mib; w.mu.Unlock() })
		w.step(t, 900*mib, 0, 1)
		w.step(t, 500*mib, time.Second, 1)
		w.step(t, 500*mib, 8*time.Second, 1)
	})
}

func TestADiskSettlesAfterLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := disks(t, true)
		w.pods[0].Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("10")}
		w.storage["a"] = &statsapi.PodStats{EphemeralStorage: fsOf(11, 1)}
		w.storage["b"] = &statsapi.PodStats{Containers: []statsapi.ContainerStats{{Name: "c", Logs: fsOf(200, 1)}}}
		w.ends = 2 * time.Second
		time.AfterFunc(time.Second, func() { w.mu.Lock(); w.disk = 900 * mib; w.mu.Unlock() })
		w.step(t, 5000*mib, 0, 1)
		w.step(t, 900*mib, 9*time.Second, 1)
		w.step(t, 900*mib, time.Second, 2)
	})
}

func TestOneDiskDoesNotWaitForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := disks(t, false)
		w.images = amount(900 * mib)
		w.storage["a"] = &statsapi.PodStats{Containers: []statsapi.ContainerStats{{Name: "c", Logs: fsOf(200, 1)}}}
		w.storage["b"] = &statsapi.PodStats{Containers: []statsapi.ContainerStats{{Name: "c", Rootfs: fsOf(200, 1)}}}
		w.slow = 3 * time.Second // so that the first has gone when it is known who is to go next
		before := time.Now()
		w.step(t, 900*mib, 0, 2)
		if took := time.Since(before); took >= settling+2*w.slow {
			t.Errorf("the second went after %v", took)
		}
	})
}

func TestSlack(t *testing.T) {
	bytes, inodes := Threshold{Signal: NodeFsAvailable, Least: bytes("1Gi")}, Threshold{Signal: NodeFsInodesFree, Least: Amount{Share: 0.5}}
	for _, c := range []struct {
		threshold            Threshold
		capacity, left, want int64
	}{
		{bytes, 0, 1000 * mib, 1 << 30 / 20},
		{bytes, 0, 10 * mib, 5 * mib},
		{bytes, 0, 0, 0},
		{Threshold{Signal: ImageFsAvailable}, 0, 1000 * mib, slackBytes},
		{inodes, 1000, 400, slackInodes},
		{inodes, 1_000_000, 400_000, 25_000},
	} {
		if got := slack(c.threshold, c.capacity, c.left); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// The processes of an evicted pod may live for its grace period, which a preStop hook may use
// up, and for the two seconds that every container gets after that.
func TestEvictedPodIsKilledAfterGraceAndStop(t *testing.T) {
	l, now := &leaver{}, time.Unix(0, 0)
	for grace, want := range map[int64]time.Duration{1: 3 * time.Second, 30: 32 * time.Second} {
		l.within(grace, now)
		if got := l.killed.Sub(now); got != want {
			t.Errorf("grace period of %d s: killed after %v, want %v", grace, got, want)
		}
	}
}
