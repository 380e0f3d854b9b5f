package eviction

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
)

func TestNextCheck(t *testing.T) {
	const gigabyte = 1 << 30
	hard := []Threshold{{Signal: MemoryAvailable, Value: bytes("1Gi")}}
	soft := []Threshold{{Signal: MemoryAvailable, Value: bytes("1Gi"), GracePeriod: time.Minute}}
	cases := []struct {
		name       string
		thresholds []Threshold
		available  int64
		met        time.Duration // how long ago it was first met, -1 for not
		want       time.Duration
	}{
		{"far away", hard, 100 * gigabyte, -1, period},
		{"as far as the maximum rate gets in a period", hard, 11 * gigabyte, -1, period},
		{"half of what the maximum rate gets in a period", hard, 6 * gigabyte, -1, period / 2},
		{"just above the threshold", hard, gigabyte + 1, -1, memoryInterval},
		{"at the threshold", hard, gigabyte, -1, memoryInterval},
		{"below a soft threshold at the start of its grace period", soft, 1, 0, period},
		{"below a soft threshold near the end of its grace period", soft, 1, 58 * time.Second, 2 * time.Second},
		{"level of the signal is unknown", []Threshold{{Signal: PIDAvailable, Value: bytes("1")}}, 0, -1, period},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var state evaluation
			if c.met >= 0 {
				state.metSince = map[int]time.Time{0: start.Add(-c.met)}
			}
			got := nextCheck(state, c.thresholds, Levels{MemoryAvailable: {Available: c.available, Capacity: 128 * gigabyte}}, start)
			if got != c.want {
				t.Errorf("%v, not %v", got, c.want)
			}
		})
	}
}

// A level that falls no faster than maxRate is seen below its threshold no later than
// minInterval after it crossed it.
func TestNextCheckIsInTime(t *testing.T) {
	thresholds := []Threshold{{Signal: MemoryAvailable, Value: bytes("1Gi")}}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		maxRate := float64(signalInfos[MemoryAvailable].maxRate)
		level, crossed := float64(random.Int64N(64<<30)), time.Time{}
		for now := start; ; {
			if level < 1<<30 {
				if late := now.Sub(crossed); !crossed.IsZero() && late > memoryInterval+time.Millisecond {
					t.Fatalf("seed %d: seen %v late", seed, late)
				}
				break
			}
			wait := nextCheck(evaluation{}, thresholds, Levels{MemoryAvailable: {Available: int64(level), Capacity: 64 << 30}}, now)
			// The level stays for some of the wait, and falls for the rest.
			falls := time.Duration(random.Float64() * float64(wait))
			if next := level - maxRate*falls.Seconds(); next < 1<<30 {
				crossed = now.Add(wait - falls + time.Duration((level-1<<30)/maxRate*float64(time.Second)))
				level = next
			} else {
				level = next
			}
			now = now.Add(wait)
		}
	}
}

// The loop reacts to continuous memory notifications without need twice in a second. That is
// enough when memory suddenly runs short.
func TestNeedlessMemoryNotificationsAreRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNode(t, memoryBelow("1Gi"))
		w.memory = 64 << 30
		w.cfg.Thresholds = append(w.cfg.Thresholds, Threshold{Signal: NodeFsAvailable, Value: bytes("999")}) // always near
		w.add(podRequesting("p", 0, v1.ResourceMemory, ""), 1<<30)
		notifier := &fakeMemoryNotifier{notifications: make(chan struct{})}
		w.deps.MemoryNotifier = notifier
		defer w.run(t)()
		checks := func(while time.Duration) int64 {
			before := w.checks.Load()
			for range while / (10 * time.Millisecond) {
				notifier.notifications <- struct{}{}
				time.Sleep(10 * time.Millisecond)
			}
			return w.checks.Load() - before
		}
		if n := checks(10 * time.Second); n < 20 || n > 25 {
			t.Errorf("%d checks in 10 s of needless notifications, want 20 to 25", n)
		}
		w.setUsage("p", 62<<30+600<<20) // less than a second's worth is left
		checks(time.Second)
		if n := checks(time.Second); n < 15 {
			t.Errorf("%d checks in 1 s near a threshold, want at least 15", n)
		}
		w.setUsage("p", 1<<30)
		checks(10 * time.Second)
		w.setUsage("p", 64<<30)
		checks(600 * time.Millisecond)
		if got := w.evictions(); len(got) != 1 {
			t.Errorf("got evictions %q, want one", got)
		}
	})
}
