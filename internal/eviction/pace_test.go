package eviction

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
)

func TestNextLook(t *testing.T) {
	const gigabyte = 1 << 30
	hard := []Threshold{{Signal: MemoryAvailable, Least: bytes("1Gi")}}
	soft := []Threshold{{Signal: MemoryAvailable, Least: bytes("1Gi"), Grace: time.Minute}}
	cases := []struct {
		name       string
		thresholds []Threshold
		available  int64
		met        time.Duration // how long ago it was first met, -1 for not
		want       time.Duration
	}{
		{"far away", hard, 100 * gigabyte, -1, period},
		{"as far as the fastest comes in a period", hard, 11 * gigabyte, -1, period},
		{"half as far", hard, 6 * gigabyte, -1, period / 2},
		{"near", hard, gigabyte + 1, -1, soon},
		{"at it", hard, gigabyte, -1, soon},
		{"below a soft one, long to go", soft, 1, 0, period},
		{"below a soft one, shortly before its grace is over", soft, 1, 58 * time.Second, 2 * time.Second},
		{"nothing is known", []Threshold{{Signal: PIDAvailable, Least: bytes("1")}}, 0, -1, period},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var state verdict
			if c.met >= 0 {
				state.since = map[int]time.Time{0: start.Add(-c.met)}
			}
			got := nextLook(state, c.thresholds, Levels{MemoryAvailable: {Available: c.available, Capacity: 128 * gigabyte}}, start)
			if got != c.want {
				t.Errorf("%v, not %v", got, c.want)
			}
		})
	}
}

// A level that falls no faster than thought is seen below its threshold no later than the
// shortest time between two looks after it came there.
func TestNextLookIsInTime(t *testing.T) {
	thresholds := []Threshold{{Signal: MemoryAvailable, Least: bytes("1Gi")}}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		fastest := float64(traits[MemoryAvailable].fastest)
		level, crossed := float64(random.Int64N(64<<30)), time.Time{}
		for now := start; ; {
			if level < 1<<30 {
				if late := now.Sub(crossed); !crossed.IsZero() && late > soon+time.Millisecond {
					t.Fatalf("seed %d: seen %v late", seed, late)
				}
				break
			}
			wait := nextLook(verdict{}, thresholds, Levels{MemoryAvailable: {Available: int64(level), Capacity: 64 << 30}}, now)
			// The level stays for some of the wait, and falls for the rest.
			falls := time.Duration(random.Float64() * float64(wait))
			if next := level - fastest*falls.Seconds(); next < 1<<30 {
				crossed = now.Add(wait - falls + time.Duration((level-1<<30)/fastest*float64(time.Second)))
				level = next
			} else {
				level = next
			}
			now = now.Add(wait)
		}
	}
}

// An alarm that rings on and on for nothing is heard twice in a second. That is enough for
// memory that runs short all of a sudden.
func TestAnAlarmThatRingsForNothingIsHeardLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memoryBelow("1Gi"))
		w.memory = 64 << 30
		w.cfg.Thresholds = append(w.cfg.Thresholds, Threshold{Signal: NodeFsAvailable, Least: bytes("999")}) // always near
		w.add(using("p", 0, v1.ResourceMemory, ""), 1<<30)
		alarm := &bell{ring: make(chan struct{})}
		w.deps.Alarm = alarm
		defer w.run(t)()
		looks := func(while time.Duration) int64 {
			before := w.looks.Load()
			for range while / (10 * time.Millisecond) {
				alarm.ring <- struct{}{}
				time.Sleep(10 * time.Millisecond)
			}
			return w.looks.Load() - before
		}
		if n := looks(10 * time.Second); n < 20 || n > 25 {
			t.Errorf("while it rang for nothing it was looked %d times in 10 s", n)
		}
		w.uses("p", 62<<30+600<<20) // less than a second's worth is left
		looks(time.Second)
		if n := looks(time.Second); n < 15 {
			t.Errorf("near a threshold it was looked %d times in 1 s", n)
		}
		w.uses("p", 1<<30)
		looks(10 * time.Second)
		w.uses("p", 64<<30)
		looks(600 * time.Millisecond)
		if got := w.orders(); len(got) != 1 {
			t.Errorf("it was done: %q", got)
		}
	})
}
