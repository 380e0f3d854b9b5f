package backoff

import (
	"slices"
	"testing"
	"time"
)

const s = time.Second

func TestNext(t *testing.T) {
	for name, c := range map[string]struct {
		backoff Backoff
		want    []time.Duration
	}{
		"doubles_up_to_the_longest":   {Backoff{First: s, Longest: 10 * s}, []time.Duration{s, 2 * s, 4 * s, 8 * s, 10 * s, 10 * s}},
		"first_is_bounded_by_longest": {Backoff{First: 20 * s, Longest: 10 * s}, []time.Duration{10 * s, 10 * s}},
		"spread_adds_jitter":          {Backoff{First: s, Longest: 2 * s, Spread: 0.5, Random: func() float64 { return 0.5 }}, []time.Duration{5 * s / 4, 5 * s / 2, 5 * s / 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []time.Duration
			for range c.want {
				got = append(got, c.backoff.Next())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("Next gave %v, want %v", got, c.want)
			}
			c.backoff.Reset()
			if again := c.backoff.Next(); again != c.want[0] {
				t.Errorf("after Reset, Next gave %v, want %v", again, c.want[0])
			}
			for i, want := range c.want {
				if got := c.backoff.After(i + 1); got != want {
					t.Errorf("After(%d) = %v, want %v", i+1, got, want)
				}
			}
			if got, want := c.backoff.After(1000), c.want[len(c.want)-1]; got != want {
				t.Errorf("After(1000) = %v, want %v", got, want)
			}
		})
	}
}

func TestChangeOfLongestTakesEffectWithNextCall(t *testing.T) {
	b := Backoff{First: s, Longest: 8 * s}
	for range 4 {
		b.Next()
	}
	b.Longest = 2 * s
	if now, later := b.Next(), b.Next(); now != 8*s || later != 2*s {
		t.Errorf("Next gave %v and %v, want 8s and 2s", now, later)
	}
}
