package bench

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSummarize(t *testing.T) {
	for name, c := range map[string]struct {
		values           []float64
		median, min, max float64
	}{
		"one":         {[]float64{3}, 3, 3, 3},
		"odd":         {[]float64{9, 1, 2}, 2, 1, 9},
		"even":        {[]float64{4, 1, 3, 2}, 2.5, 1, 4},
		"equal":       {[]float64{5, 5, 5}, 5, 5, 5},
		"one outlier": {[]float64{1, 1, 1, 100}, 1, 1, 100},
	} {
		t.Run(name, func(t *testing.T) {
			var samples []Sample
			for i, v := range c.values {
				samples = append(samples, Sample{Round: i + 1, Value: v})
			}
			got := summarize(samples)
			want := Summary{Median: c.median, Min: c.min, Max: c.max, Samples: samples}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestGoalOutcome(t *testing.T) {
	by := func(bare, reference, ours float64) map[string]Summary {
		all := map[string]Summary{}
		for subject, value := range map[string]float64{Bare: bare, Reference: reference, Ours: ours} {
			if value > 0 {
				all[subject] = Summary{Median: value}
			}
		}
		return all
	}
	for name, c := range map[string]struct {
		goal *Goal
		by   map[string]Summary
		want string
	}{
		"no goal":                      {nil, by(1, 1, 1), ""},
		"absolute, reached":            {atMost(38), by(0, 92, 38), Reached},
		"absolute, not reached":        {atMost(38), by(0, 92, 64), NotReached},
		"relative, reached":            {atMostTimes(1.1, Bare), by(1, 2, 1.1), Reached},
		"relative, not reached":        {atMostTimes(1.1, Bare), by(1, 2, 1.2), NotReached},
		"relative, other not measured": {atMostTimes(1.1, Bare), by(0, 2, 1), NotKnown},
		"ours not measured":            {atMost(38), by(1, 2, 0), NotKnown},
	} {
		if got := c.goal.outcome(c.by); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestTable checks that every row is measured by one experiment, and that experiments name no others.
func TestTable(t *testing.T) {
	measured := map[string]int{}
	for _, e := range experiments {
		for _, row := range e.rows {
			measured[row]++
		}
	}
	for _, row := range rows {
		if measured[row.ID] != 1 {
			t.Errorf("row %s is measured by %d experiments", row.ID, measured[row.ID])
		}
		delete(measured, row.ID)
	}
	for row := range measured {
		t.Errorf("row %s is not in the table", row)
	}
	for _, c := range Charts {
		for _, id := range c.IDs {
			found := false
			for _, row := range rows {
				found = found || row.ID == id
			}
			if !found {
				t.Errorf("chart %s: no row %s", c.File, id)
			}
		}
	}
}
