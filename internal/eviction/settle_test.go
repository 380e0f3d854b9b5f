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

// disks is a node with four pods and a threshold of 1 GiB on each disk.
func disks(t *testing.T, limits bool) *fakeNode {
	w := newFakeNode(t, Config{Thresholds: []Threshold{{Signal: NodeFsAvailable, Value: bytes("1Gi")}, {Signal: ImageFsAvailable, Value: bytes("1Gi")},
		{Signal: MemoryAvailable, Value: bytes("10")}}, PressureTransitionPeriod: time.Minute, EnforceStorageLimits: limits})
	w.disk = 5000 * mib
	for _, name := range []string{"a", "b", "c", "d"} {
		w.add(podRequesting(name, 0, v1.ResourceMemory, ""), 1)
	}
	return w
}

// step sets the available space, advances time and checks. It expects that many evictions so
// far.
func (w *fakeNode) step(t *testing.T, disk uint64, after time.Duration, want int) {
	t.Helper()
	w.disk = disk
	time.Sleep(after)
	if wait := w.runUntilIdle(t); len(w.evictions()) != want || wait > period {
		t.Errorf("with %d MiB available: %d evictions, want %d; next check in %v", disk/mib, len(w.evictions()), want, wait)
	}
}

// A runtime removes writable layers some seconds after the pod is gone. No other pod is evicted
// meanwhile, unless the disk fills up further; the next one is evicted if that was not enough.
func TestDiskSettlesBeforeNextEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := disks(t, false)
		w.step(t, 900*mib, 0, 1)
		w.step(t, 900*mib, time.Second, 1) // settling
		w.step(t, 900*mib-1, time.Second, 1)
		w.step(t, 850*mib, time.Second, 1) // within the slack
		w.step(t, 850*mib, 6*time.Second, 1)
		w.step(t, 850*mib, time.Second, 2) // settled below the threshold
		w.step(t, 850*mib, time.Second, 2)
		w.step(t, 750*mib, time.Second, 3) // fills up beyond the slack
		w.step(t, 2000*mib, time.Second, 3)
	})
}

// What the evicted pod writes until it is gone does not cause another eviction.
func TestWritesOfTerminatingPodCauseNoEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := disks(t, false)
		w.terminationTime = 2 * time.Second
		time.AfterFunc(time.Second, func() { w.mu.Lock(); w.disk = 500 * mib; w.mu.Unlock() })
		w.step(t, 900*mib, 0, 1)
		w.step(t, 500*mib, time.Second, 1)
		w.step(t, 500*mib, 8*time.Second, 1)
	})
}

func TestDiskSettlesAfterLimitEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := disks(t, true)
		w.pods[0].Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("10")}
		w.storage["a"] = &statsapi.PodStats{EphemeralStorage: fsOf(11, 1)}
		w.storage["b"] = &statsapi.PodStats{Containers: []statsapi.ContainerStats{{Name: "c", Logs: fsOf(200, 1)}}}
		w.terminationTime = 2 * time.Second
		time.AfterFunc(time.Second, func() { w.mu.Lock(); w.disk = 900 * mib; w.mu.Unlock() })
		w.step(t, 5000*mib, 0, 1)
		w.step(t, 900*mib, 9*time.Second, 1)
		w.step(t, 900*mib, time.Second, 2)
	})
}

func TestDisksSettleIndependently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := disks(t, false)
		w.images = amount(900 * mib)
		w.storage["a"] = &statsapi.PodStats{Containers: []statsapi.ContainerStats{{Name: "c", Logs: fsOf(200, 1)}}}
		w.storage["b"] = &statsapi.PodStats{Containers: []statsapi.ContainerStats{{Name: "c", Rootfs: fsOf(200, 1)}}}
		w.latency = 3 * time.Second // the first pod is gone when the second is selected
		before := time.Now()
		w.step(t, 900*mib, 0, 2)
		if took := time.Since(before); took >= settlePeriod+2*w.latency {
			t.Errorf("second eviction after %v", took)
		}
	})
}

func TestSlack(t *testing.T) {
	bytes, inodes := Threshold{Signal: NodeFsAvailable, Value: bytes("1Gi")}, Threshold{Signal: NodeFsInodesFree, Value: Amount{Percentage: 0.5}}
	for _, c := range []struct {
		threshold            Threshold
		capacity, left, want int64
	}{
		{bytes, 0, 1000 * mib, 1 << 30 / 20},
		{bytes, 0, 10 * mib, 5 * mib},
		{bytes, 0, 0, 0},
		{Threshold{Signal: ImageFsAvailable}, 0, 1000 * mib, minSlackBytes},
		{inodes, 1000, 400, minSlackInodes},
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
	l, now := &terminatingPod{}, time.Unix(0, 0)
	for grace, want := range map[int64]time.Duration{1: 3 * time.Second, 30: 32 * time.Second} {
		l.setGrace(grace, now)
		if got := l.killedBy.Sub(now); got != want {
			t.Errorf("grace period of %d s: killed after %v, want %v", grace, got, want)
		}
	}
}
