package eviction

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/pod"
)

func memoryBelow(least string) Config {
	return Config{Thresholds: []Threshold{{Signal: MemoryAvailable, Value: bytes(least)}}, PressureTransitionPeriod: time.Minute}
}

func TestEvictsGreatestExcessAndNoMoreThanNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNode(t, memoryBelow("300"))
		w.add(podRequesting("small", 0, v1.ResourceMemory, ""), 100)
		w.add(podRequesting("large", 0, v1.ResourceMemory, ""), 200)
		w.add(podRequesting("within-request", 0, v1.ResourceMemory, "500"), 450)
		w.terminationTime = time.Second
		before := time.Now()
		if wait := w.synchronize(t.Context()); wait != 0 {
			t.Errorf("next check after an eviction is in %v, want 0", wait)
		}
		w.runUntilIdle(t)
		if took := time.Since(before); took != w.terminationTime {
			t.Errorf("waited %v for the pod's termination", took)
		}
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim memory", "Evicted large memory",
			"evict large Evicted in 1s (disrupted)", "count memory.available")
		if !slices.Equal(w.Conditions(), []v1.NodeConditionType{v1.NodeMemoryPressure}) || w.changes != 1 {
			t.Errorf("conditions are %v after %d changes", w.Conditions(), w.changes)
		}
		if !slices.Equal(w.ageTaken, []string{"memory.available"}) {
			t.Errorf("stats ages were measured of %v", w.ageTaken)
		}
		w.synchronize(t.Context())
		w.expect(t) // the level is above the threshold now
	})
}

func TestCriticalPodsAreNotEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNode(t, memoryBelow("300"))
		w.add(podRequesting("critical", 2_000_000_000, v1.ResourceMemory, ""), 900)
		static := podRequesting("static", 0, v1.ResourceMemory, "")
		static.Annotations = map[string]string{pod.AnnotationSource: "file"}
		w.add(static, 50)
		for _, want := range []time.Duration{1, 2, 4} {
			wait := w.synchronize(t.Context())
			if wait != want*time.Second {
				t.Errorf("next check is in %v, want %d s", wait, want)
			}
			time.Sleep(wait)
		}
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim memory") // once, not three times
		w.synchronize(t.Context())                                        // no candidate, backs off
		if wait := w.synchronize(t.Context()); wait != 8*time.Second {
			t.Errorf("next check is in %v, want 8 s", wait)
		}
		// An evictable pod ends the back-off.
		w.add(podRequesting("other", 0, v1.ResourceMemory, ""), 10)
		w.synchronize(t.Context())
		w.expect(t, "Evicted other memory", "evict other Evicted in 1s (disrupted)", "count memory.available")
	})
}

func TestSoftThresholdGracePeriods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNode(t, Config{Thresholds: []Threshold{{Signal: MemoryAvailable, Value: bytes("300"), GracePeriod: 15 * time.Second}}, PressureTransitionPeriod: time.Minute, MaxPodGracePeriodSeconds: 20})
		p := podRequesting("p", 0, v1.ResourceMemory, "")
		p.Spec.TerminationGracePeriodSeconds = new(int64)
		*p.Spec.TerminationGracePeriodSeconds = 30
		w.add(p, 900)
		waited := time.Duration(0)
		for len(w.log) == 0 {
			wait := w.synchronize(t.Context())
			time.Sleep(wait)
			waited += wait
		}
		if waited != 15*time.Second {
			t.Errorf("evicted after %v, want 15s", waited)
		}
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim memory", "Evicted p memory", "evict p Evicted in 20s (disrupted)", "count memory.available")
	})
}

func TestGarbageIsCollectedBeforeEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNode(t, Config{Thresholds: []Threshold{{Signal: NodeFsAvailable, Value: bytes("100")}}, PressureTransitionPeriod: time.Minute})
		w.add(podRequesting("p", 0, v1.ResourceMemory, ""), 1)
		w.disk = 99
		w.deps.RemoveImages = func(context.Context) error { w.record("remove images"); w.disk = 500; return nil }
		w.runUntilIdle(t)
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim ephemeral-storage", "remove containers", "remove images")

		w.disk = 99
		w.deps.RemoveImages = func(context.Context) error { w.record("remove images"); return errors.New("busy") }
		w.runUntilIdle(t)
		w.expect(t, "remove containers", "remove images", "measure disks", "Evicted p ephemeral-storage", "evict p Evicted in 1s (disrupted)", "count nodefs.available")
	})
}

func TestStorageLimitsAreEnforced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNode(t, Config{EnforceStorageLimits: true, PressureTransitionPeriod: time.Minute})
		limited := podRequesting("limited", 0, "", "")
		limited.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("10")}
		w.add(limited, 0)
		w.add(podRequesting("free", 0, "", ""), 0)
		w.storage["limited"] = &statsapi.PodStats{EphemeralStorage: fsOf(5, 1)}
		w.runUntilIdle(t)
		w.runUntilIdle(t) // too soon to measure again
		w.expect(t, "measure limited")
		time.Sleep(period)
		w.storage["limited"] = &statsapi.PodStats{EphemeralStorage: fsOf(11, 1)}
		w.runUntilIdle(t)
		w.expect(t, "measure limited", "Evicted limited ", "evict limited Evicted in 1s", "count ephemeralpodfs.limit")
		time.Sleep(period)
		w.runUntilIdle(t) // no pod with limits is left
		w.expect(t)
	})
}

func TestWaitForTerminationIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNode(t, memoryBelow("300"))
		w.add(podRequesting("stuck", 0, v1.ResourceMemory, ""), 900)
		w.stuck["stuck"] = true
		before := time.Now()
		w.runUntilIdle(t)
		if took := time.Since(before); took != terminationTimeout {
			t.Errorf("waited %v, want terminationTimeout", took)
		}
	})
}

// fakeMemoryNotifier notifies when a test writes to its channel.
type fakeMemoryNotifier struct {
	notifications chan struct{}
	thresholds    []cgroup.MemoryThreshold
}

func (n *fakeMemoryNotifier) SetThresholds(thresholds []cgroup.MemoryThreshold) error {
	n.thresholds = thresholds
	return nil
}

func (n *fakeMemoryNotifier) Run(ctx context.Context, notify func()) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.notifications:
			notify()
		}
	}
}

func TestRunChecksOncePerPeriodAndOnNotification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNode(t, Config{Thresholds: []Threshold{{Signal: PIDAvailable, Value: bytes("1")}, {Signal: MemoryAvailable, Value: bytes("100"), GracePeriod: time.Hour}}, PressureTransitionPeriod: time.Minute})
		notifier := &fakeMemoryNotifier{notifications: make(chan struct{})}
		w.deps.MemoryNotifier = notifier
		w.add(podRequesting("p", 0, v1.ResourceMemory, ""), 950) // met, in its grace period: no reason to check often
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := w.checks.Load(); n < 6 || n > 7 {
			t.Errorf("%d checks in a minute, want 6 or 7", n)
		}
		if diff := cmp.Diff([]cgroup.MemoryThreshold{{Bytes: 907}}, notifier.thresholds); diff != "" {
			t.Error(diff)
		}
		before := w.checks.Load()
		time.Sleep(3 * time.Second)
		notifier.notifications <- struct{}{}
		time.Sleep(2 * minWait)
		synctest.Wait()
		if n := w.checks.Load() - before; n != 1 {
			t.Errorf("%d checks after the notification, want 1", n)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestSignalErrorCausesNoEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNode(t, memoryBelow("300"))
		w.add(podRequesting("p", 0, v1.ResourceMemory, ""), 900)
		w.signalsErr = errors.New("no such file")
		if wait := w.synchronize(t.Context()); wait != period || len(w.log) > 0 {
			t.Errorf("without signals: %s, next check in %v", strings.Join(w.log, ", "), wait)
		}
	})
}
