package eviction

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// The Evictor acts on memory within a second, whatever else is slow.
func TestMemoryIsActedOnDuringSlowWork(t *testing.T) {
	memory := Threshold{Signal: MemoryAvailable, Value: bytes("300")}
	disk := Threshold{Signal: NodeFsAvailable, Value: bytes("100")}
	soft := Threshold{Signal: NodeFsAvailable, Value: bytes("100"), GracePeriod: time.Second}
	const hog = "evict hog Evicted in 1s (disrupted)"
	cases := []struct {
		name string
		cfg  Config
		set  func(*fakeNode)
		want []string // before memory is short, and by a second later
	}{
		{"while limits are measured", Config{Thresholds: []Threshold{memory}, EnforceStorageLimits: true},
			func(w *fakeNode) { w.latency = time.Minute }, []string{hog}},
		{"while images are removed", Config{Thresholds: []Threshold{memory, disk}},
			func(w *fakeNode) { w.latency, w.disk = time.Minute, 50 }, []string{hog}},
		{"runtime does not answer", Config{Thresholds: []Threshold{memory, disk}},
			func(w *fakeNode) { w.runtimeHangs = true }, []string{hog}},
		{"pod evicted for disk has a long grace period", Config{Thresholds: []Threshold{memory, soft}, MaxPodGracePeriodSeconds: 600},
			func(w *fakeNode) { w.terminationTime, w.disk = 10*time.Minute, 50 }, []string{"evict writer Evicted in 600s (disrupted)", hog}},
		{"pod evicted for disk does not terminate", Config{Thresholds: []Threshold{memory, disk}},
			func(w *fakeNode) { w.stuck["writer"], w.disk = true, 50 }, []string{"evict writer Evicted in 1s (disrupted)", hog}},
		{"pod over its storage limit does not terminate", Config{Thresholds: []Threshold{memory}, EnforceStorageLimits: true},
			func(w *fakeNode) {
				w.stuck["writer"] = true
				w.storage["writer"] = &statsapi.PodStats{EphemeralStorage: fsOf(11, 1)}
			}, []string{"evict writer Evicted in 1s", hog}},
		{"processes of the evicted pod die and its volumes stay", Config{Thresholds: []Threshold{memory}},
			func(w *fakeNode) {
				w.stuck["writer"] = true
				w.used["writer"] = 800
				time.AfterFunc(3*time.Second, func() { w.setUsage("writer", 0) })
			}, []string{"evict writer Evicted in 1s (disrupted)", hog}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.cfg.PressureTransitionPeriod = time.Minute
				w := newFakeNode(t, c.cfg)
				writer := podRequesting("writer", -1, v1.ResourceMemory, "")
				writer.Spec.TerminationGracePeriodSeconds = new(int64(600))
				writer.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("10")}
				w.add(writer, 1)
				w.add(podRequesting("hog", 0, v1.ResourceMemory, "10"), 1)
				c.set(w)
				stop := w.run(t)
				defer stop()
				time.Sleep(9 * time.Second)
				if got := w.evictions(); !slices.Equal(got, c.want[:len(c.want)-1]) {
					t.Errorf("before memory is short: %q", got)
				}
				w.setUsage("writer", 0)
				w.setUsage("hog", 800)
				time.Sleep(time.Second)
				if got := w.evictions(); !slices.Equal(got, c.want) {
					t.Errorf("a second after memory is short: %q", got)
				}
			})
		})
	}
}

// A hard threshold shortens the grace period that a soft one has given, without a second event.
func TestHardThresholdShortensGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNode(t, Config{Thresholds: []Threshold{
			{Signal: MemoryAvailable, Value: bytes("100")}, {Signal: MemoryAvailable, Value: bytes("300"), GracePeriod: time.Second},
		}, PressureTransitionPeriod: time.Minute, MaxPodGracePeriodSeconds: 60})
		p := podRequesting("p", 0, v1.ResourceMemory, "")
		p.Spec.TerminationGracePeriodSeconds = new(int64(60))
		w.add(p, 800)
		w.add(podRequesting("other", 0, v1.ResourceMemory, ""), 1)
		w.terminationTime = 50 * time.Second
		defer w.run(t)()
		time.Sleep(45 * time.Second) // longer than terminationTimeout
		w.setUsage("p", 950)
		time.Sleep(time.Second)
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim memory", "Evicted p memory", "evict p Evicted in 60s (disrupted)",
			"count memory.available", "EvictionThresholdMet: Attempting to reclaim memory", "evict p Evicted in 1s (disrupted)")
		time.Sleep(10 * time.Second)
		w.expect(t) // it is gone, and no other pod is evicted
	})
}

// A pod that does not terminate is evicted once, and then other pods instead of it.
func TestStuckPodIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNode(t, memoryBelow("300"))
		w.add(podRequesting("stuck", 0, v1.ResourceMemory, ""), 600)
		w.add(podRequesting("next", 0, v1.ResourceMemory, ""), 150)
		w.stuck["stuck"] = true
		stop := w.run(t)
		time.Sleep(terminationTimeout - time.Second)
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim memory", "Evicted stuck memory", "evict stuck Evicted in 1s (disrupted)", "count memory.available")
		time.Sleep(2 * time.Second)
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim memory", "Evicted next memory", "evict next Evicted in 1s (disrupted)", "count memory.available")
		w.setUsage("stuck", 800)
		time.Sleep(5 * time.Minute)
		stop()
		for _, line := range w.log {
			if line != "EvictionThresholdMet: Attempting to reclaim memory" {
				t.Errorf("without another evictable pod: %s", line)
			}
		}
	})
}
