package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// result is the last recorded outcome of a test, with the day.
type result struct {
	state   string
	first   string // state of the first try, if that of the retry differs
	seconds float64
	day     string
}

// retrySeparator is between the states of two tries.
const retrySeparator = ", then "

// Record writes the outcomes of a run to the results file of the side and regenerates the report of the
// suite. It replaces earlier outcomes of the same tests and removes tests that are no
// longer selected.
func Record(p *Programs, suite *Suite, side Side, outcomes []Outcome, classified Classification, now time.Time) error {
	path := p.results(side)
	results, err := readResults(path)
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		results[o.Test] = result{state: o.State, first: o.First, seconds: o.Seconds, day: now.UTC().Format(time.DateOnly)}
	}
	maps.DeleteFunc(results, func(test string, _ result) bool { return !slices.Contains(classified.Run, test) })
	if err := writeResults(path, results); err != nil {
		return err
	}
	return p.writeReport(suite, classified)
}

func (p *Programs) results(side Side) string {
	return filepath.Join(p.Root, "test", "conformance", "results", string(side)+".tsv")
}

// recorded returns the recorded outcomes of a side. Those of a cluster include the outcomes of our kubelet in
// the suite of kubelets, which has the same control plane.
func (p *Programs) recorded(side Side) (map[string]result, error) {
	results, err := readResults(p.results(side))
	if err != nil || side != Cluster {
		return results, err
	}
	all, err := readResults(p.results(Ours))
	maps.Copy(all, results)
	return all, err
}

// readResults reads lines of state, seconds, day and test. If a test was retried, the state field
// has both states. A missing file has no results.
func readResults(path string) (map[string]result, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]result{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	results := map[string]result{}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 4)
		if len(fields) != 4 {
			return nil, fmt.Errorf("read results: %s:%d: want state, seconds, day and test", path, number)
		}
		seconds, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			return nil, fmt.Errorf("read results: %s:%d: %w", path, number, err)
		}
		r := result{state: fields[0], seconds: seconds, day: fields[2]}
		if first, second, both := strings.Cut(r.state, retrySeparator); both {
			r.first, r.state = first, second
		}
		results[fields[3]] = r
	}
	return results, nil
}

func writeResults(path string, results map[string]result) error {
	var text strings.Builder
	for _, test := range slices.Sorted(maps.Keys(results)) {
		r := results[test]
		state := r.state
		if r.first != "" {
			state = r.first + retrySeparator + r.state
		}
		fmt.Fprintf(&text, "%s\t%.1f\t%s\t%s\n", state, r.seconds, r.day, test)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// Summarize counts the outcomes by state and returns the failures, sorted by name.
func Summarize(outcomes []Outcome) (counts map[string]int, failures []Outcome) {
	counts = map[string]int{}
	for _, o := range outcomes {
		counts[o.State]++
		if o.State == failed {
			failures = append(failures, o)
		}
	}
	slices.SortFunc(failures, func(a, b Outcome) int { return cmp.Compare(a.Test, b.Test) })
	return counts, failures
}
