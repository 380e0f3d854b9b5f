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
	return Config{Thresholds: []Threshold{{Signal: MemoryAvailable, Least: bytes(least)}}, Transition: time.Minute}
}

func TestTheGreatestExcessGoesFirstAndNoMoreThanNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memoryBelow("300"))
		w.add(using("small", 0, v1.ResourceMemory, ""), 100)
		w.add(using("large", 0, v1.ResourceMemory, ""), 200)
		w.add(using("asked", 0, v1.ResourceMemory, "500"), 450)
		w.ends = time.Second
		before := time.Now()
		if wait := w.look(t.Context()); wait != 0 {
			t.Errorf("after an eviction the next look is in %v", wait)
		}
		w.finish(t)
		if took := time.Since(before); took != w.ends {
			t.Errorf("it was waited %v for the pod's end", took)
		}
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim memory", "Evicted large memory",
			"evict large Evicted in 1s (disrupted)", "count memory.available")
		if !slices.Equal(w.Conditions(), []v1.NodeConditionType{v1.NodeMemoryPressure}) || w.changes != 1 {
			t.Errorf("conditions are %v after %d changes", w.Conditions(), w.changes)
		}
		if !slices.Equal(w.ageTaken, []string{"memory.available"}) {
			t.Errorf("ages were taken of %v", w.ageTaken)
		}
		w.look(t.Context())
		w.expect(t) // there is enough now
	})
}

func TestCriticalPodsAreSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memoryBelow("300"))
		w.add(using("critical", 2_000_000_000, v1.ResourceMemory, ""), 900)
		static := using("static", 0, v1.ResourceMemory, "")
		static.Annotations = map[string]string{pod.AnnotationSource: "file"}
		w.add(static, 50)
		for _, want := range []time.Duration{1, 2, 4} {
			wait := w.look(t.Context())
			if wait != want*time.Second {
				t.Errorf("the next look is in %v, want %d s", wait, want)
			}
			time.Sleep(wait)
		}
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim memory") // once, not three times
		w.look(t.Context())                                               // in vain, and the next try put off
		if wait := w.look(t.Context()); wait != 8*time.Second {
			t.Errorf("the next look is in %v, want 8 s", wait)
		}
		// A pod that can go has it tried at once.
		w.add(using("other", 0, v1.ResourceMemory, ""), 10)
		w.look(t.Context())
		w.expect(t, "Evicted other memory", "evict other Evicted in 1s (disrupted)", "count memory.available")
	})
}

func TestSoftThresholdsGiveTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{Thresholds: []Threshold{{Signal: MemoryAvailable, Least: bytes("300"), Grace: 15 * time.Second}}, Transition: time.Minute, MaxGrace: 20})
		p := using("p", 0, v1.ResourceMemory, "")
		p.Spec.TerminationGracePeriodSeconds = new(int64)
		*p.Spec.TerminationGracePeriodSeconds = 30
		w.add(p, 900)
		waited := time.Duration(0)
		for len(w.log) == 0 {
			wait := w.look(t.Context())
			time.Sleep(wait)
			waited += wait
		}
		if waited != 15*time.Second {
			t.Errorf("it was evicted after %v", waited)
		}
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim memory", "Evicted p memory", "evict p Evicted in 20s (disrupted)", "count memory.available")
	})
}

func TestWhatNobodyUsesGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{Thresholds: []Threshold{{Signal: NodeFsAvailable, Least: bytes("100")}}, Transition: time.Minute})
		w.add(using("p", 0, v1.ResourceMemory, ""), 1)
		w.disk = 99
		w.deps.RemoveImages = func(context.Context) error { w.do("remove images"); w.disk = 500; return nil }
		w.finish(t)
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim ephemeral-storage", "remove containers", "remove images")

		w.disk = 99
		w.deps.RemoveImages = func(context.Context) error { w.do("remove images"); return errors.New("busy") }
		w.finish(t)
		w.expect(t, "remove containers", "remove images", "measure disks", "Evicted p ephemeral-storage", "evict p Evicted in 1s (disrupted)", "count nodefs.available")
	})
}

func TestLimitsAreEnforced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{Limits: true, Transition: time.Minute})
		limited := using("limited", 0, "", "")
		limited.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("10")}
		w.add(limited, 0)
		w.add(using("free", 0, "", ""), 0)
		w.storage["limited"] = &statsapi.PodStats{EphemeralStorage: fsOf(5, 1)}
		w.finish(t)
		w.finish(t) // too soon to measure again
		w.expect(t, "measure limited")
		time.Sleep(period)
		w.storage["limited"] = &statsapi.PodStats{EphemeralStorage: fsOf(11, 1)}
		w.finish(t)
		w.expect(t, "measure limited", "Evicted limited ", "evict limited Evicted in 1s", "count ephemeralpodfs.limit")
		time.Sleep(period)
		w.finish(t) // nobody is left who has limits
		w.expect(t)
	})
}

func TestAPodThatDoesNotEndIsNotWaitedForForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memoryBelow("300"))
		w.add(using("stuck", 0, v1.ResourceMemory, ""), 900)
		w.stuck["stuck"] = true
		before := time.Now()
		w.finish(t)
		if took := time.Since(before); took != patience {
			t.Errorf("it was waited for %v", took)
		}
	})
}

// bell is an alarm that a test rings.
type bell struct {
	ring  chan struct{}
	marks []cgroup.Mark
}

func (b *bell) Set(marks []cgroup.Mark) error { b.marks = marks; return nil }

func (b *bell) Run(ctx context.Context, ring func()) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.ring:
			ring()
		}
	}
}

func TestRunLooksRarelyAndAtOnceWhenRung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{Thresholds: []Threshold{{Signal: PIDAvailable, Least: bytes("1")}, {Signal: MemoryAvailable, Least: bytes("100"), Grace: time.Hour}}, Transition: time.Minute})
		alarm := &bell{ring: make(chan struct{})}
		w.deps.Alarm = alarm
		w.add(using("p", 0, v1.ResourceMemory, ""), 950) // met, in its grace: no reason to look often
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := w.looks.Load(); n < 6 || n > 7 {
			t.Errorf("in a minute it looked %d times", n)
		}
		if diff := cmp.Diff([]cgroup.Mark{{Bytes: 907}}, alarm.marks); diff != "" {
			t.Error(diff)
		}
		before := w.looks.Load()
		time.Sleep(3 * time.Second)
		alarm.ring <- struct{}{}
		time.Sleep(2 * pause)
		synctest.Wait()
		if n := w.looks.Load() - before; n != 1 {
			t.Errorf("when the alarm rang it looked %d times", n)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestTroubleIsNoReasonToEvict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memoryBelow("300"))
		w.add(using("p", 0, v1.ResourceMemory, ""), 900)
		w.broken = errors.New("no such file")
		if wait := w.look(t.Context()); wait != period || len(w.log) > 0 {
			t.Errorf("without figures it did %s, next look in %v", strings.Join(w.log, ", "), wait)
		}
	})
}
