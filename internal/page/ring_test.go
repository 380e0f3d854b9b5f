package page

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"swiftlet/internal/stats"
)

func TestRing(t *testing.T) {
	type point struct {
		slot, reach int64
		value       float32
	}
	for name, c := range map[string]struct {
		points []point
		until  int64
		want   string
	}{
		"empty":                        {nil, 9, "- - - - -"},
		"one":                          {[]point{{9, 1, 1}}, 9, "- - - - 1"},
		"the newest is older than now": {[]point{{9, 1, 1}}, 10, "- - - 1 -"},
		"a gap":                        {[]point{{6, 1, 1}, {9, 1, 2}}, 9, "- 1 - - 2"},
		"a gap that is carried":        {[]point{{6, 3, 1}, {9, 3, 2}}, 9, "- 1 2 2 2"},
		"a gap that is too long":       {[]point{{5, 2, 1}, {9, 2, 2}}, 9, "1 - - 2 2"},
		"more than it holds":           {[]point{{1, 1, 1}, {5, 9, 2}, {9, 9, 3}}, 9, "2 3 3 3 3"},
		"again in the same interval":   {[]point{{9, 1, 1}, {9, 1, 2}}, 9, "- - - - 2"},
		"much later":                   {[]point{{9, 1, 1}, {900, 9, 2}}, 900, "- - - - 2"},
		"older than what it holds":     {[]point{{9, 1, 1}, {3, 1, 2}, {-3, 1, 2}}, 9, "- - - - 1"},
		"no value":                     {[]point{{8, 1, 1}, {9, 1, unknown}}, 9, "- - - 1 -"},
	} {
		t.Run(name, func(t *testing.T) {
			r := ring{series: 1, points: 5}
			for _, p := range c.points {
				r.add(p.slot, p.reach, p.value)
			}
			var got []string
			for _, v := range r.list(0, c.until) {
				text := "-"
				if v != nil {
					text = fmt.Sprint(*v)
				}
				got = append(got, text)
			}
			if all := strings.Join(got, " "); all != c.want {
				t.Errorf("got %s, want %s", all, c.want)
			}
		})
	}
}

// TestNodeSamples: rates are those between two readings, and one of a minute stands for all its points.
func TestNodeSamples(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	n := newNodeSamples(newAxis(at))
	n.add(stats.Counters{At: at, CPUSeconds: 100, Memory: 1000, RX: math.NaN()})
	n.add(stats.Counters{At: at.Add(time.Minute), CPUSeconds: 130, Memory: 2000, RX: 5})
	h := n.history(at.Add(time.Minute)).Node
	last := len(h.T) - 1
	if h.T[last] != at.Unix()+60 || h.T[last-1] != at.Unix()+50 || len(h.T) != nodePoints {
		t.Errorf("times end with %v", h.T[last-1:])
	}
	for i := range 6 {
		if cpu := h.CPU[last-i]; cpu == nil || *cpu != 0.5 {
			t.Errorf("point %d before the last has CPU %v, want 0.5", i, cpu)
		}
	}
	if h.CPU[last-6] != nil || *h.Memory[last-6] != 1000 || *h.Memory[last] != 2000 || h.RX[last] != nil {
		t.Errorf("got CPU %v, memory %v and %v, RX %v", h.CPU[last-6], *h.Memory[last-6], *h.Memory[last], h.RX[last])
	}
	n.add(stats.Counters{At: at.Add(70 * time.Second), CPUSeconds: 1}) // as after a reboot
	if s := n.newest(at.Add(75 * time.Second)); s.CPU != nil || s.T != at.Unix()+70 {
		t.Errorf("the newest is %+v, want no CPU", s)
	}
}
