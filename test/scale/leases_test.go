package scale

import (
	"slices"
	"testing"
	"time"
)

func at(seconds float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func renewal(node string, seconds float64) request {
	return request{at: at(seconds), node: node, what: "update leases", code: 200}
}

func TestLateness(t *testing.T) {
	failed := renewal("a", 15)
	failed.code = 500
	all := requests{
		renewal("a", 0), renewal("b", 1), renewal("a", 10.5), renewal("b", 11), failed, renewal("b", 21),
		{at: at(22), node: "b", what: "patch nodes/status", code: 200}, renewal("a", 33),
	}
	for name, c := range map[string]struct {
		end     float64
		stopped []period
		want    []time.Duration
	}{
		"gaps beyond the interval":       {end: 30, want: []time.Duration{0, 0, 500 * time.Millisecond, 12500 * time.Millisecond}},
		"a lease that is not renewed":    {end: 50, want: []time.Duration{0, 0, 500 * time.Millisecond, 7 * time.Second, 12500 * time.Millisecond, 19 * time.Second}},
		"gaps across a storm left out":   {end: 30, stopped: []period{{at(12), at(13)}}, want: []time.Duration{0, 500 * time.Millisecond}},
		"a storm after the last renewal": {end: 30, stopped: []period{{at(40), at(41)}}, want: []time.Duration{0, 0, 500 * time.Millisecond, 12500 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lateness(all, at(c.end), c.stopped); !slices.Equal(got, c.want) {
				t.Errorf("lateness is %v, want %v", got, c.want)
			}
		})
	}
}

func TestRenewedSince(t *testing.T) {
	all := requests{renewal("a", 0), renewal("b", 2), renewal("a", 3), renewal("a", 13)}
	got := renewedSince(all, at(1))
	if len(got) != 2 || !got["a"].Equal(at(3)) || !got["b"].Equal(at(2)) {
		t.Errorf("first renewals are %v", got)
	}
}

func TestPercentile(t *testing.T) {
	var hundred []time.Duration
	for i := range 101 {
		hundred = append(hundred, time.Duration(i))
	}
	for p, want := range map[float64]time.Duration{0: 0, 50: 50, 99: 99, 100: 100} {
		if got := percentile(hundred, p); got != want {
			t.Errorf("p%v of 0 to 100 is %d, want %d", p, got, want)
		}
	}
	if got := percentile(nil, 99); got != 0 {
		t.Errorf("p99 of nothing is %d", got)
	}
}
