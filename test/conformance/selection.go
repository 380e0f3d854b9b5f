package conformance

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed selection.yaml
var selectionFile []byte

// Selection says of each of the suite's tests whether it is run, and why not.
type Selection struct {
	// Rules are tried in order; the first that matches decides.
	Rules []*Rule `json:"rules"`
	// Failures say why tests that are run fail.
	Failures []*Rule `json:"failures"`
}

// Rule is tests of some files, of some names, or of both.
type Rule struct {
	Files string `json:"files,omitempty"`
	Tests string `json:"tests,omitempty"`
	Run   bool   `json:"run,omitempty"`
	Why   string `json:"why,omitempty"` // the tests are not run, or fail

	files, tests *regexp.Regexp
}

// Test is one of the suite's.
type Test struct {
	File string // within upstream's repository
	Name string
}

// Selected is the selection of selection.yaml.
func Selected() (*Selection, error) { return parseSelection(selectionFile) }

func parseSelection(data []byte) (*Selection, error) {
	s := &Selection{}
	if err := yaml.UnmarshalStrict(data, s); err != nil {
		return nil, fmt.Errorf("read selection.yaml: %w", err)
	}
	for i, rule := range slices.Concat(s.Rules, s.Failures) {
		if rule.Files+rule.Tests == "" || rule.Run != (rule.Why == "") {
			return nil, fmt.Errorf("read selection.yaml: rule %d needs files or tests, and either run or why", i+1)
		}
		var err error
		if rule.files, err = regexp.Compile(rule.Files); err != nil {
			return nil, fmt.Errorf("read selection.yaml: rule %d: %w", i+1, err)
		}
		if rule.tests, err = regexp.Compile(rule.Tests); err != nil {
			return nil, fmt.Errorf("read selection.yaml: rule %d: %w", i+1, err)
		}
	}
	return s, nil
}

// matches holds for everything where there is no pattern.
func (r *Rule) matches(test Test) bool {
	return r.files.MatchString(test.File) && r.tests.MatchString(test.Name)
}

// String is how the report names the tests.
func (r *Rule) String() string { return strings.TrimSpace(r.Files + " " + r.Tests) }

// Cause says why a test fails, "" where that is not known.
func (s *Selection) Cause(test string) string {
	for _, f := range s.Failures {
		if f.tests.MatchString(test) {
			return f.Why
		}
	}
	return ""
}

// Judged is the suite's tests by what the selection says of them.
type Judged struct {
	Run     []string      // names, as the suite orders them
	LeftOut map[*Rule]int // how many each rule leaves out
}

// Judge is an error where no rule says what to do with a test.
func (s *Selection) Judge(tests []Test) (Judged, error) {
	judged := Judged{LeftOut: map[*Rule]int{}}
	var unknown []string
	for _, test := range tests {
		i := slices.IndexFunc(s.Rules, func(r *Rule) bool { return r.matches(test) })
		switch {
		case i < 0:
			unknown = append(unknown, test.File+": "+test.Name)
		case s.Rules[i].Run:
			judged.Run = append(judged.Run, test.Name)
		default:
			judged.LeftOut[s.Rules[i]]++
		}
	}
	if len(unknown) > 0 {
		return Judged{}, fmt.Errorf("selection.yaml says nothing of %d tests:\n%s", len(unknown), strings.Join(unknown, "\n"))
	}
	return judged, nil
}
