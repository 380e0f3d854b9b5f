package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"swiftlet/test/conformance"
)

// outputLines is how many lines of a failed test's output are printed. The log has all.
const outputLines = 100

// listTests prints the tests that a run would include.
func listTests(ctx context.Context, options conformance.Options) error {
	programs, err := conformance.FindPrograms(ctx, os.Stderr)
	if err != nil {
		return err
	}
	names, err := programs.Choose(ctx, options)
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(names, "\n"))
	return nil
}

// printChanges prints the outcomes that differ from the recorded ones.
func printChanges(programs *conformance.Programs, all map[conformance.Side][]conformance.Outcome) error {
	for _, side := range slices.Sorted(maps.Keys(all)) {
		changes, same, err := programs.Changes(side, all[side])
		if err != nil {
			return err
		}
		fmt.Println()
		for _, c := range changes {
			fmt.Printf("CHANGED on %s: was %s, is %s: %s\n", side, c.Before, c.Now, c.Test)
		}
		fmt.Printf("%-9s %d tests as recorded, %d changed\n", side, same, len(changes))
	}
	return nil
}

// summarize prints the outcomes of a run on one kubelet. A failed test is an error.
func summarize(outcomes []conformance.Outcome, options conformance.Options) error {
	if len(outcomes) == 0 {
		return errors.New("no test matches")
	}
	_, failures := conformance.Summarize(outcomes)
	for _, f := range failures {
		fmt.Printf("\nFAILED %s\n%s\n%s\n", f.Test, lastLines(f.Output), f.Message)
	}
	fmt.Println(totals(outcomes))
	if len(options.Tests) > 0 {
		return conformance.CheckAll(options.Tests, outcomes)
	}
	if len(failures) > 0 {
		return fmt.Errorf("%d tests failed", len(failures))
	}
	return nil
}

// compare prints the tests with different outcomes, and those that fail on both with the cause. It
// returns an error if a test does worse on ours.
func compare(all map[conformance.Side][]conformance.Outcome, options conformance.Options) error {
	selection, err := options.Suite.Selected()
	if err != nil {
		return err
	}
	differences := conformance.Compare(all[options.Suite.Ours], all[options.Suite.Reference])
	if options.NotRun { // they did not have the same tests to run
		differences = slices.DeleteFunc(differences, func(d conformance.Difference) bool { return d.Ours == "" || d.Reference == "" })
	}
	differs := map[string]bool{}
	defects := 0
	for _, d := range differences {
		differs[d.Test] = true
		if d.Defect() {
			defects++
		}
		fmt.Printf("\nDIFFERS %s\n%s: %s, %s: %s\n%s\n%s\n", d.Test,
			options.Suite.Ours, cmp.Or(d.Ours, "not run"), options.Suite.Reference, cmp.Or(d.Reference, "not run"), lastLines(d.Output), d.Message)
	}
	for _, side := range options.Suite.Sides() {
		printRetries(side, all[side])
	}
	_, failures := conformance.Summarize(all[options.Suite.Ours])
	for _, f := range failures {
		if !differs[f.Test] {
			fmt.Printf("\nFAILED ON BOTH %s\ncause: %s\n", f.Test, cmp.Or(selection.Cause(f.Test), "unknown"))
		}
	}
	for _, side := range options.Suite.Sides() {
		fmt.Printf("%-9s %s\n", side, totals(all[side]))
	}
	fmt.Printf("%d tests differ\n", len(differences))
	if defects > 0 {
		return fmt.Errorf("%d tests do worse on %s", defects, options.Suite.Ours)
	}
	return nil
}

func printRetries(side conformance.Side, outcomes []conformance.Outcome) {
	for _, o := range outcomes {
		if o.First != "" {
			fmt.Printf("\nRETRIED on %s: %s, then %s: %s\n", side, o.First, o.State, o.Test)
		}
	}
}

func totals(outcomes []conformance.Outcome) string {
	counts, _ := conformance.Summarize(outcomes)
	return fmt.Sprintf("%d passed, %d failed, %d skipped", counts["passed"], counts["failed"], counts["skipped"])
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-outputLines):], "\n")
}
