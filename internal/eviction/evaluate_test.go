package eviction

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func bytes(text string) Amount {
	q := resource.MustParse(text)
	return Amount{Quantity: &q}
}

// memory is the levels of a machine with 1000 bytes of memory.
func memory(available int64) Levels {
	return Levels{MemoryAvailable: {Available: available, Capacity: 1000}}
}

func TestEvaluate(t *testing.T) {
	hard := Threshold{Signal: MemoryAvailable, Value: bytes("100")}
	withReclaim := Threshold{Signal: MemoryAvailable, Value: bytes("100"), MinReclaim: bytes("50")}
	soft := Threshold{Signal: MemoryAvailable, Value: Amount{Percentage: 0.2}, GracePeriod: 30 * time.Second}
	type check struct {
		at         int // seconds
		available  int64
		due        bool
		conditions bool
	}
	cases := []struct {
		name      string
		threshold Threshold
		checks    []check
	}{
		{"level above threshold", hard, []check{{0, 100, false, false}, {10, 1000, false, false}}},
		{"hard threshold is due at once", hard, []check{{0, 100, false, false}, {1, 99, true, true}}},
		{"condition outlasts the threshold by the transition period", hard,
			[]check{{0, 50, true, true}, {1, 500, false, true}, {59, 500, false, true}, {60, 500, false, false}}},
		{"condition is renewed whenever the threshold is met", hard,
			[]check{{0, 50, true, true}, {50, 99, true, true}, {100, 500, false, true}, {111, 500, false, false}}},
		{"threshold stays met until minimum reclaim is reached", withReclaim,
			[]check{{0, 120, false, false}, {1, 99, true, true}, {2, 120, true, true}, {3, 149, true, true}, {4, 150, false, true}, {5, 120, false, true}}},
		{"soft threshold sets the condition at once and is due after its grace period", soft,
			[]check{{0, 199, false, true}, {29, 10, false, true}, {30, 199, true, true}, {31, 200, false, true}}},
		{"grace period restarts when the level recovers", soft, []check{{0, 199, false, true}, {20, 200, false, true}, {21, 199, false, true}, {50, 199, false, true}, {51, 199, true, true}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var state evaluation
			for _, l := range c.checks {
				state = evaluate(state, []Threshold{c.threshold}, memory(l.available), time.Minute, start.Add(time.Duration(l.at)*time.Second))
				if got := len(state.due) > 0; got != l.due {
					t.Errorf("at %ds with %d left: due is %v", l.at, l.available, got)
				}
				if got := slices.Contains(state.conditions, v1.NodeMemoryPressure); got != l.conditions {
					t.Errorf("at %ds with %d left: pressure is %v", l.at, l.available, got)
				}
			}
		})
	}
}

// An unknown level meets no threshold, and signals are independent.
func TestEvaluateKeepsSignalsApart(t *testing.T) {
	thresholds := []Threshold{{Signal: MemoryAvailable, Value: bytes("100")}, {Signal: NodeFsInodesFree, Value: Amount{Percentage: 0.05}}, {Signal: PIDAvailable, Value: bytes("10")}}
	levels := Levels{NodeFsInodesFree: {Available: 4, Capacity: 100}, PIDAvailable: {Available: 10, Capacity: 100}}
	got := evaluate(evaluation{}, thresholds, levels, time.Minute, start)
	if !slices.Equal(got.due, []int{1}) || !slices.Equal(got.conditions, []v1.NodeConditionType{v1.NodeDiskPressure}) {
		t.Errorf("due are %v, conditions %v", got.due, got.conditions)
	}
	if aboveThresholds(thresholds, levels) {
		t.Error("aboveThresholds is true without inodes")
	}
	if levels[NodeFsInodesFree] = (Level{Available: 5, Capacity: 100}); !aboveThresholds(thresholds, levels) {
		t.Error("aboveThresholds is false with enough inodes")
	}
}

// Invariants for random levels.
func TestEvaluateInvariants(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		threshold := Threshold{Signal: MemoryAvailable, Value: bytes("300"), GracePeriod: time.Duration(random.IntN(3)) * 10 * time.Second}
		if random.IntN(2) == 0 {
			threshold.MinReclaim = Amount{Percentage: 0.1}
		}
		const transition = 20 * time.Second
		var state evaluation
		now, below := start, time.Time{} // below: since when the level is too low without a break
		var lastLow time.Time
		for range 100 {
			now = now.Add(time.Duration(random.IntN(8000)) * time.Millisecond)
			available := random.Int64N(1000)
			before := state
			state = evaluate(before, []Threshold{threshold}, memory(available), transition, now)
			low := available < 300
			if !low {
				below = time.Time{}
			} else {
				lastLow = now
				if below.IsZero() {
					below = now
				}
			}
			due, pressed := len(state.due) > 0, len(state.conditions) > 0
			switch {
			case due && available >= threshold.floor(1000, true):
				t.Fatalf("seed %d: due with %d left", seed, available)
			case due && !low && len(before.due) == 0:
				t.Fatalf("seed %d: due by minimum reclaim without having been due", seed)
			case low && now.Sub(below) >= threshold.GracePeriod && !due:
				t.Fatalf("seed %d: not due after %v", seed, now.Sub(below))
			case low && !pressed:
				t.Fatalf("seed %d: too little, and no condition", seed)
			case pressed && !due && now.Sub(lastLow) > transition+threshold.GracePeriod && len(before.due) == 0 && len(before.conditions) == 0:
				t.Fatalf("seed %d: a condition out of nothing", seed)
			}
			again := evaluate(before, []Threshold{threshold}, memory(available), transition, now)
			if diff := cmp.Diff(state.due, again.due); diff != "" {
				t.Fatalf("seed %d: the same levels gave another evaluation: %s", seed, diff)
			}
		}
	}
}
