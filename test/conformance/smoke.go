package conformance

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed smoke.txt
var smokeFile string

// Smoke are the tests of smoke.txt, a few of each kind that are soon over.
func Smoke() []string { return slices.Collect(strings.FieldsFuncSeq(smokeFile, isNewline)) }

func isNewline(r rune) bool { return r == '\n' }

// CheckAll is an error unless each of the tests has passed: one that the suite has renamed,
// or that finds that it does not apply, would not be missed otherwise.
func CheckAll(tests []string, outcomes []Outcome) error {
	came := map[string]string{}
	for _, o := range outcomes {
		came[o.Test] = o.State
	}
	var lines []string
	for _, test := range tests {
		switch state := came[test]; state {
		case passed:
		case "":
			lines = append(lines, "was not run: "+test)
		default:
			lines = append(lines, state+": "+test)
		}
	}
	if len(lines) > 0 {
		return fmt.Errorf("%d of %d tests did not pass:\n%s", len(lines), len(tests), strings.Join(lines, "\n"))
	}
	return nil
}
