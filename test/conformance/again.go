package conformance

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"swiftlet/test/bed"
)

// mostAgain is how many tests are tried a second time. Where more differ, that is no accident.
const mostAgain = 30

// RunBoth runs the suite on both kubelets at the same time, each in a bed of its own. Tests of
// which not the same came are run once more on both, with little beside them: many of upstream's
// expect a machine that is never late. What came of the first try stays to be seen.
func RunBoth(ctx context.Context, p *Programs, options Options) (map[bed.KubeletKind][]Outcome, error) {
	all, err := runBoth(ctx, p, options)
	again := namesToTryAgain(all)
	if err != nil || len(again) == 0 || len(again) > mostAgain {
		return all, err
	}
	fmt.Fprintf(options.Report, "\n%d tests differ, and are run again\n", len(again))
	options.Out, options.Procs = filepath.Join(options.Out, "again"), 2
	options.Tests, options.Focus, options.NotRun = again, "", false
	second, err := runBoth(ctx, p, options)
	for kubelet := range all {
		all[kubelet] = withSecondTries(all[kubelet], second[kubelet])
	}
	return all, err
}

// namesToTryAgain are the tests that were run on both and differ.
func namesToTryAgain(all map[bed.KubeletKind][]Outcome) []string {
	var names []string
	for _, d := range Compare(all[bed.Ours], all[bed.Reference]) {
		if d.Ours != "" && d.Reference != "" {
			names = append(names, d.Test)
		}
	}
	return names
}

// withSecondTries has second outcomes in the place of first ones.
func withSecondTries(first, second []Outcome) []Outcome {
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
