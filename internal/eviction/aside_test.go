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

// Memory is acted on within a second, whatever else takes long.
func TestNothingHidesMemory(t *testing.T) {
	memory := Threshold{Signal: MemoryAvailable, Least: bytes("300")}
	disk := Threshold{Signal: NodeFsAvailable, Least: bytes("100")}
	softly := Threshold{Signal: NodeFsAvailable, Least: bytes("100"), Grace: time.Second}
	const hog = "evict hog Evicted in 1s (disrupted)"
	cases := []struct {
		name string
		cfg  Config
		set  func(*world)
		want []string // before memory is short, and by a second later
	}{
		{"limits are being measured", Config{Thresholds: []Threshold{memory}, Limits: true},
			func(w *world) { w.slow = time.Minute }, []string{hog}},
		{"images are being removed", Config{Thresholds: []Threshold{memory, disk}},
			func(w *world) { w.slow, w.disk = time.Minute, 50 }, []string{hog}},
		{"the runtime does not answer", Config{Thresholds: []Threshold{memory, disk}},
			func(w *world) { w.silent = true }, []string{hog}},
		{"a pod takes its time to leave a disk", Config{Thresholds: []Threshold{memory, softly}, MaxGrace: 600},
			func(w *world) { w.ends, w.disk = 10*time.Minute, 50 }, []string{"evict writer Evicted in 600s (disrupted)", hog}},
		{"a pod does not leave a disk", Config{Thresholds: []Threshold{memory, disk}},
			func(w *world) { w.stuck["writer"], w.disk = true, 50 }, []string{"evict writer Evicted in 1s (disrupted)", hog}},
		{"a pod does not end that exceeds its limits", Config{Thresholds: []Threshold{memory}, Limits: true},
			func(w *world) {
				w.stuck["writer"] = true
				w.storage["writer"] = &statsapi.PodStats{EphemeralStorage: fsOf(11, 1)}
			}, []string{"evict writer Evicted in 1s", hog}},
		{"a pod ends that had taken memory, and its volumes do not", Config{Thresholds: []Threshold{memory}},
			func(w *world) {
				w.stuck["writer"] = true
				w.used["writer"] = 800
				time.AfterFunc(3*time.Second, func() { w.uses("writer", 0) })
			}, []string{"evict writer Evicted in 1s (disrupted)", hog}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.cfg.Transition = time.Minute
				w := newWorld(t, c.cfg)
				writer := using("writer", -1, v1.ResourceMemory, "")
				writer.Spec.TerminationGracePeriodSeconds = new(int64(600))
				writer.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("10")}
				w.add(writer, 1)
				w.add(using("hog", 0, v1.ResourceMemory, "10"), 1)
				c.set(w)
				stop := w.run(t)
				defer stop()
				time.Sleep(9 * time.Second)
				if got := w.orders(); !slices.Equal(got, c.want[:len(c.want)-1]) {
					t.Errorf("before memory is short: %q", got)
				}
				w.uses("writer", 0)
				w.uses("hog", 800)
				time.Sleep(time.Second)
				if got := w.orders(); !slices.Equal(got, c.want) {
					t.Errorf("a second after memory is short: %q", got)
				}
			})
		})
	}
}

// A hard threshold cuts short what a soft one has granted, and nobody is told of it twice.
func TestAPodThatTakesItsTimeIsHastened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{Thresholds: []Threshold{
			{Signal: MemoryAvailable, Least: bytes("100")}, {Signal: MemoryAvailable, Least: bytes("300"), Grace: time.Second},
		}, Transition: time.Minute, MaxGrace: 60})
		p := using("p", 0, v1.ResourceMemory, "")
		p.Spec.TerminationGracePeriodSeconds = new(int64(60))
		w.add(p, 800)
		w.add(using("other", 0, v1.ResourceMemory, ""), 1)
		w.ends = 50 * time.Second
		defer w.run(t)()
		time.Sleep(45 * time.Second) // longer than a pod without grace is waited for
		w.uses("p", 950)
		time.Sleep(time.Second)
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim memory", "Evicted p memory", "evict p Evicted in 60s (disrupted)",
			"count memory.available", "EvictionThresholdMet: Attempting to reclaim memory", "evict p Evicted in 1s (disrupted)")
		time.Sleep(10 * time.Second)
		w.expect(t) // it has gone, and nobody else need to
	})
}

// A pod that cannot be ended is told so once, and others go in its stead.
func TestAPodThatDoesNotEndIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memoryBelow("300"))
		w.add(using("stuck", 0, v1.ResourceMemory, ""), 600)
		w.add(using("next", 0, v1.ResourceMemory, ""), 150)
		w.stuck["stuck"] = true
		stop := w.run(t)
		time.Sleep(patience - time.Second)
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim memory", "Evicted stuck memory", "evict stuck Evicted in 1s (disrupted)", "count memory.available")
		time.Sleep(2 * time.Second)
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim memory", "Evicted next memory", "evict next Evicted in 1s (disrupted)", "count memory.available")
		w.uses("stuck", 800)
		time.Sleep(5 * time.Minute)
		stop()
		for _, line := range w.log {
			if line != "EvictionThresholdMet: Attempting to reclaim memory" {
				t.Errorf("when nobody else is left: %s", line)
			}
		}
	})
}
