package bench

import (
	"cmp"
	"slices"
	"sync"
)

// Sample is one measured value.
type Sample struct {
	Round int     `json:"round"`
	Value float64 `json:"value"`
}

// Summary has the samples of one row and one subject, with their median and spread.
type Summary struct {
	Median  float64  `json:"median"`
	Min     float64  `json:"min"`
	Max     float64  `json:"max"`
	Samples []Sample `json:"samples"`
}

// summarize returns the summary of at least one sample.
func summarize(samples []Sample) Summary {
	sorted := slices.SortedFunc(slices.Values(samples), func(a, b Sample) int { return cmp.Compare(a.Value, b.Value) })
	middle := len(sorted) / 2
	median := sorted[middle].Value
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1].Value + median) / 2
	}
	return Summary{Median: median, Min: sorted[0].Value, Max: sorted[len(sorted)-1].Value, Samples: samples}
}

// recorder collects samples by row and subject.
type recorder struct {
	mu      sync.Mutex
	samples map[string]map[string][]Sample // row → subject → samples
}

func newRecorder() *recorder { return &recorder{samples: map[string]map[string][]Sample{}} }

func (r *recorder) add(row, subject string, round int, value float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.samples[row] == nil {
		r.samples[row] = map[string][]Sample{}
	}
	r.samples[row][subject] = append(r.samples[row][subject], Sample{Round: round, Value: value})
}

// summaries returns the summaries of a row by subject.
func (r *recorder) summaries(row string) map[string]Summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]Summary{}
	for subject, samples := range r.samples[row] {
		all[subject] = summarize(slices.Clone(samples))
	}
	return all
}
