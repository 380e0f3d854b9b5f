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

	"swiftlet/test/bed"
)

// result is the last outcome of a test that was recorded, and the day.
type result struct {
	state   string
	first   string // at the first try, if the second went otherwise
	seconds float64
	day     string
}

// then is between the states of two tries.
const then = ", then "

// Record puts the outcomes of a run in the place of earlier ones of the same tests, in the
// file that the repository keeps of this kubelet, and makes docs/conformance.md anew. Tests
// that are not selected any more are forgotten.
func Record(p *Programs, kubelet bed.KubeletKind, outcomes []Outcome, judged Judged, now time.Time) error {
	path := p.results(kubelet)
	results, err := readResults(path)
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		results[o.Test] = result{state: o.State, first: o.First, seconds: o.Seconds, day: now.UTC().Format(time.DateOnly)}
	}
	maps.DeleteFunc(results, func(test string, _ result) bool { return !slices.Contains(judged.Run, test) })
	if err := writeResults(path, results); err != nil {
		return err
	}
	return p.writeReport(judged)
}

func (p *Programs) results(kubelet bed.KubeletKind) string {
	return filepath.Join(p.Root, "test", "conformance", "results", string(kubelet)+".tsv")
}

// readResults reads lines of state, seconds, day and test. Where two tries
// differ, the states of both are there. No file is no results.
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
		if first, second, both := strings.Cut(r.state, then); both {
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
			state = r.first + then + r.state
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

// Summarize orders outcomes for reading, the failures last where they are seen.
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
