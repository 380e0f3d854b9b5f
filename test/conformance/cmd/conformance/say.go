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

	"swiftlet/test/bed"
	"swiftlet/test/conformance"
)

// outputLines is how much of what a failed test said is shown; the log has it all.
const outputLines = 100

// listTests names those that a run would take.
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

// sayChanges shows what came otherwise than the repository has it recorded.
func sayChanges(programs *conformance.Programs, all map[bed.KubeletKind][]conformance.Outcome) error {
	for _, kubelet := range slices.Sorted(maps.Keys(all)) {
		changes, same, err := programs.Changes(kubelet, all[kubelet])
		if err != nil {
			return err
		}
		fmt.Println()
		for _, c := range changes {
			fmt.Printf("CHANGED on %s, %s before and %s now: %s\n", kubelet, c.Before, c.Now, c.Test)
		}
		fmt.Printf("%-9s %d tests as recorded, %d otherwise\n", kubelet, same, len(changes))
	}
	return nil
}

// summarize shows what came of a run on one kubelet. Every failure is an error.
func summarize(came []conformance.Outcome, options conformance.Options) error {
	if len(came) == 0 {
		return errors.New("no test matches")
	}
	_, failures := conformance.Summarize(came)
	for _, f := range failures {
		fmt.Printf("\nFAILED %s\n%s\n%s\n", f.Test, lastLines(f.Output), f.Message)
	}
	fmt.Println(totals(came))
	if len(options.Tests) > 0 {
		return conformance.CheckAll(options.Tests, came)
	}
	if len(failures) > 0 {
		return fmt.Errorf("%d tests failed", len(failures))
	}
	return nil
}

// compare shows what differs between the kubelets, and what fails on both with the cause.
// That ours does worse is an error.
func compare(all map[bed.KubeletKind][]conformance.Outcome, options conformance.Options) error {
	selection, err := conformance.Selected()
	if err != nil {
		return err
	}
	differences := conformance.Compare(all[bed.Ours], all[bed.Reference])
	if options.NotRun { // they had not the same tests to run
		differences = slices.DeleteFunc(differences, func(d conformance.Difference) bool { return d.Ours == "" || d.Reference == "" })
	}
	differs := map[string]bool{}
	defects := 0
	for _, d := range differences {
		differs[d.Test] = true
		if d.Defect() {
			defects++
		}
		fmt.Printf("\nDIFFERS %s\nours: %s, reference: %s\n%s\n%s\n", d.Test,
			cmp.Or(d.Ours, "not run"), cmp.Or(d.Reference, "not run"), lastLines(d.Output), d.Message)
	}
	for _, kubelet := range conformance.Kubelets {
		saySecondTries(kubelet, all[kubelet])
	}
	_, failures := conformance.Summarize(all[bed.Ours])
	for _, f := range failures {
		if !differs[f.Test] {
			fmt.Printf("\nFAILED ON BOTH %s\nbecause %s\n", f.Test, cmp.Or(selection.Cause(f.Test), "of something unknown"))
		}
	}
	for _, kubelet := range conformance.Kubelets {
		fmt.Printf("%-9s %s\n", kubelet, totals(all[kubelet]))
	}
	fmt.Printf("%d tests differ\n", len(differences))
	if defects > 0 {
		return fmt.Errorf("%d tests do worse on ours", defects)
	}
	return nil
}

func saySecondTries(kubelet bed.KubeletKind, came []conformance.Outcome) {
	for _, o := range came {
		if o.First != "" {
			fmt.Printf("\nAGAIN on %s, %s at first and %s then: %s\n", kubelet, o.First, o.State, o.Test)
		}
	}
}

func totals(came []conformance.Outcome) string {
	counts, _ := conformance.Summarize(came)
	return fmt.Sprintf("%d passed, %d failed, %d skipped", counts["passed"], counts["failed"], counts["skipped"])
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-outputLines):], "\n")
}
