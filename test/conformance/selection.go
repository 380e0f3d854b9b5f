package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Selection decides for each test of the suite whether it is run.
type Selection struct {
	// Rules are tried in order. The first that matches applies.
	Rules []*Rule `json:"rules"`
	// Failures have the known causes of failing tests.
	Failures []*Rule `json:"failures"`
}

// Rule matches tests by file, by name, or by both.
type Rule struct {
	Files string `json:"files,omitempty"`
	Tests string `json:"tests,omitempty"`
	Run   bool   `json:"run,omitempty"`
	// Machine is why the tests are run on a machine, "" if they are run in a box.
	Machine string `json:"machine,omitempty"`
	Why     string `json:"why,omitempty"` // why the tests are not run, or fail

	files, tests *regexp.Regexp
}

// Test is a test of the suite.
type Test struct {
	File string // path within upstream's repository
	Name string
}

// parseSelection reads the file of that name.
func parseSelection(file string, data []byte) (*Selection, error) {
	s := &Selection{}
	if err := yaml.UnmarshalStrict(data, s); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	for i, rule := range slices.Concat(s.Rules, s.Failures) {
		if rule.Files+rule.Tests == "" || rule.Run != (rule.Why == "") || rule.Machine != "" && !rule.Run {
			return nil, fmt.Errorf("read %s: rule %d needs files or tests, and either run, with or without machine, or why", file, i+1)
		}
		var err error
		if rule.files, err = regexp.Compile(rule.Files); err != nil {
			return nil, fmt.Errorf("read %s: rule %d: %w", file, i+1, err)
		}
		if rule.tests, err = regexp.Compile(rule.Tests); err != nil {
			return nil, fmt.Errorf("read %s: rule %d: %w", file, i+1, err)
		}
	}
	return s, nil
}

// matches reports whether the patterns match. An empty pattern matches everything.
func (r *Rule) matches(test Test) bool {
	return r.files.MatchString(test.File) && r.tests.MatchString(test.Name)
}

// String returns the patterns, for the report.
func (r *Rule) String() string { return strings.TrimSpace(r.Files + " " + r.Tests) }

// Cause returns why a test fails, "" if that is not known.
func (s *Selection) Cause(test string) string {
	for _, f := range s.Failures {
		if f.tests.MatchString(test) {
			return f.Why
		}
	}
	return ""
}

// Classification has the tests that are run, and how many each rule leaves out.
type Classification struct {
	Run       []string         // names, as the suite orders them
	OnMachine map[string]*Rule // those of Run that need a machine
	LeftOut   map[*Rule]int    // number of tests that each rule leaves out
}

// Classify applies the rules to all tests. A test without a matching rule is an error.
func (s *Selection) Classify(tests []Test) (Classification, error) {
	classified := Classification{OnMachine: map[string]*Rule{}, LeftOut: map[*Rule]int{}}
	var unknown []string
	for _, test := range tests {
		i := slices.IndexFunc(s.Rules, func(r *Rule) bool { return r.matches(test) })
		switch {
		case i < 0:
			unknown = append(unknown, test.File+": "+test.Name)
		case s.Rules[i].Run:
			classified.Run = append(classified.Run, test.Name)
			if s.Rules[i].Machine != "" {
				classified.OnMachine[test.Name] = s.Rules[i]
			}
		default:
			classified.LeftOut[s.Rules[i]]++
		}
	}
	if len(unknown) > 0 {
		return Classification{}, fmt.Errorf("classify tests: the selection has no rule for %d tests:\n%s", len(unknown), strings.Join(unknown, "\n"))
	}
	return classified, nil
}
