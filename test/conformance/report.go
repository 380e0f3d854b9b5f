package conformance

import (
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// writeReport writes the report of a suite from the recorded results.
func (p *Programs) writeReport(suite *Suite, classified Classification) error {
	selection, err := suite.Selected()
	if err != nil {
		return err
	}
	both := map[Side]map[string]result{}
	for _, side := range suite.Sides() {
		if both[side], err = p.recorded(side); err != nil {
			return err
		}
		maps.DeleteFunc(both[side], func(test string, _ result) bool { return !slices.Contains(classified.Run, test) })
	}
	path := filepath.Join(p.Root, "docs", suite.report)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	text := suite.text(p.Release, selection, classified, both[suite.Reference], both[suite.Ours])
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// text returns Markdown: totals, failures, tests that are left out, and every test.
func (s *Suite) text(release string, selection *Selection, classified Classification, reference, ours map[string]result) string {
	var text strings.Builder
	fmt.Fprintf(&text, "# %s\n\n"+s.intro+"\n| | %s | %s |\n|---|---|---|\n", s.title, release, s.Reference, s.Ours)
	for _, word := range []string{passed, failed, skipped} {
		matches := func(r result) bool { return r.state == word }
		fmt.Fprintf(&text, "| %s | %d | %d |\n", word, count(reference, matches), count(ours, matches))
	}
	second := func(r result) bool { return r.state == passed && r.first != "" }
	fmt.Fprintf(&text, "| %s at the second try, of those | %d | %d |\n", passed, count(reference, second), count(ours, second))
	fmt.Fprintf(&text, "| selected and not run yet | %d | %d |\n", missing(classified.Run, reference), missing(classified.Run, ours))
	fmt.Fprintf(&text, "| run between | %s | %s |\n", days(reference), days(ours))
	s.writeFailures(&text, selection, reference, ours)
	if len(classified.OnMachine) > 0 {
		writeOnMachine(&text, selection, classified)
	}
	writeLeftOut(&text, selection, classified)
	fmt.Fprintf(&text, "\n## Every test\n\n| test | %s | %s |\n|---|---|---|\n", s.Reference, s.Ours)
	for _, test := range tests(classified.Run, reference, ours) {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", strings.ReplaceAll(test, "|", `\|`), cell(reference, test), cell(ours, test))
	}
	return text.String()
}

func (s *Suite) writeFailures(text *strings.Builder, selection *Selection, reference, ours map[string]result) {
	fmt.Fprintf(text, "\n## Failed\n\nOf the tests that were run on both, %d pass on %s and not on %s, and %d the other way round.\n\n",
		better(reference, ours), s.Reference.inText(), s.Ours.inText(), better(ours, reference))
	any := false
	for _, test := range tests(nil, reference, ours) {
		if reference[test].state != failed && ours[test].state != failed {
			continue
		}
		if !any {
			fmt.Fprintf(text, "| test | %s | %s | why |\n|---|---|---|---|\n", s.Reference, s.Ours)
		}
		any = true
		fmt.Fprintf(text, "| %s | %s | %s | %s |\n", strings.ReplaceAll(test, "|", `\|`), cell(reference, test), cell(ours, test), selection.Cause(test))
	}
	if !any {
		text.WriteString("None of those that were run.\n")
	}
}

// writeOnMachine writes a row per rule for tests on a machine.
func writeOnMachine(text *strings.Builder, selection *Selection, classified Classification) {
	fmt.Fprintf(text, "\n## On a machine\n\n%d of the tests are run on a node with its own kernel: user-mode Linux, with cgroup v2, one CPU and all\ncapabilities. The others are run in a box on the host's kernel.\n\n| tests | which | why |\n|---|---|---|\n",
		len(classified.OnMachine))
	numbers := map[*Rule]int{}
	for _, rule := range classified.OnMachine {
		numbers[rule]++
	}
	for _, rule := range selection.Rules {
		if rule.Machine != "" {
			fmt.Fprintf(text, "| %d | `%s` | %s |\n", numbers[rule], strings.ReplaceAll(rule.String(), "|", `\|`), rule.Machine)
		}
	}
}

// writeLeftOut writes a row per rule, with its patterns and the number of tests.
func writeLeftOut(text *strings.Builder, selection *Selection, classified Classification) {
	total := 0
	for _, n := range classified.LeftOut {
		total += n
	}
	fmt.Fprintf(text, "\n## Left out\n\nOf the suite's %d tests, %d are run. The first row that matches decides.\n\n| tests | which | why |\n|---|---|---|\n",
		len(classified.Run)+total, len(classified.Run))
	for _, rule := range selection.Rules {
		if !rule.Run {
			fmt.Fprintf(text, "| %d | `%s` | %s |\n", classified.LeftOut[rule], strings.ReplaceAll(rule.String(), "|", `\|`), rule.Why)
		}
	}
}

// better counts the tests that pass in one and do not pass in the other.
func better(one, other map[string]result) int {
	n := 0
	for test, r := range one {
		if otherResult, run := other[test]; run && r.state == passed && otherResult.state != passed {
			n++
		}
	}
	return n
}

// tests lists all names, sorted.
func tests(selected []string, reference, ours map[string]result) []string {
	all := map[string]bool{}
	for _, names := range []iter.Seq[string]{slices.Values(selected), maps.Keys(reference), maps.Keys(ours)} {
		for name := range names {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// missing counts the selected tests without a result.
func missing(selected []string, results map[string]result) int {
	n := 0
	for _, test := range selected {
		if _, run := results[test]; !run {
			n++
		}
	}
	return n
}

func cell(results map[string]result, test string) string {
	r, ok := results[test]
	if !ok {
		return ""
	}
	if r.first != "" {
		return fmt.Sprintf("%s at the second try, %.0f s", r.state, r.seconds)
	}
	return fmt.Sprintf("%s, %.0f s", r.state, r.seconds)
}

func count(results map[string]result, matches func(result) bool) int {
	n := 0
	for _, r := range results {
		if matches(r) {
			n++
		}
	}
	return n
}

// days returns the first and the last day of the runs.
func days(results map[string]result) string {
	var all []string
	for _, r := range results {
		all = append(all, r.day)
	}
	if len(all) == 0 {
		return "never"
	}
	return slices.Min(all) + " and " + slices.Max(all)
}
