package conformance

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed smoke.txt
var smokeFile string

// Smoke lists the tests of smoke.txt: a few short ones of each kind.
func Smoke() []string { return slices.Collect(strings.FieldsFuncSeq(smokeFile, isNewline)) }

func isNewline(r rune) bool { return r == '\n' }

// CheckAll returns an error unless every test has passed. So it also finds tests that were renamed
// in the suite or that skip themselves.
func CheckAll(tests []string, outcomes []Outcome) error {
	states := map[string]string{}
	for _, o := range outcomes {
		states[o.Test] = o.State
	}
	var lines []string
	for _, test := range tests {
		switch state := states[test]; state {
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
