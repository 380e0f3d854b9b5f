package conformance

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
)

// maxRetries is how many tests are retried at most. If more differ, the cause is not flakiness.
const maxRetries = 30

// RunBoth runs the suite on both sides at the same time, each in its own bed. It retries tests
// with different outcomes once on both, with little load: many tests of upstream depend on timing.
// The outcome of the first try is kept in Outcome.First.
func RunBoth(ctx context.Context, p *Programs, options Options) (map[Side][]Outcome, error) {
	all, err := runBoth(ctx, p, options)
	retry := testsToRetry(options.Suite, all)
	if err != nil || len(retry) == 0 || len(retry) > maxRetries {
		return all, err
	}
	fmt.Fprintf(options.Report, "\n%d tests differ, and are run again\n", len(retry))
	options.Out, options.Procs = filepath.Join(options.Out, "again"), 2
	options.Tests, options.Focus, options.Skip, options.NotRun = retry, "", "", false
	second, err := runBoth(ctx, p, options)
	for side := range all {
		all[side] = mergeRetries(all[side], second[side])
	}
	return all, err
}

// testsToRetry lists the tests that were run on both sides and have different outcomes.
func testsToRetry(suite *Suite, all map[Side][]Outcome) []string {
	var names []string
	for _, d := range Compare(all[suite.Ours], all[suite.Reference]) {
		if d.Ours != "" && d.Reference != "" {
			names = append(names, d.Test)
		}
	}
	return names
}

// mergeRetries replaces first outcomes by those of the retry.
func mergeRetries(first, second []Outcome) []Outcome {
	all := slices.Clone(first)
	for _, o := range second {
		if i := slices.IndexFunc(all, func(f Outcome) bool { return f.Test == o.Test }); i >= 0 {
			if o.State != all[i].State {
				o.First = all[i].State
			}
			all[i] = o
		}
	}
	return all
}
