package conformance

import (
	"strings"
	"testing"
)

const smallSelection = `
rules:
- tests: \[Alpha\]
  why: off by default
- tests: lower an OOM score
  run: true
  machine: a box may not
- files: e2e/(node|apps)/
  tests: should
  run: true
- files: e2e/node/
  why: slow
failures:
- tests: should fail
  why: it must
`

func TestFirstMatchingRuleApplies(t *testing.T) {
	s, err := parseSelection("small.yaml", []byte(smallSelection))
	if err != nil {
		t.Fatal(err)
	}
	classified, err := s.Classify([]Test{
		{"test/e2e/node/pods.go", "Pods should run [Alpha]"},
		{"test/e2e/node/pods.go", "Pods should run"},
		{"test/e2e/apps/job.go", "Jobs should run"},
		{"test/e2e/node/pods.go", "Pods should lower an OOM score"},
		{"test/e2e/node/pods.go", "Pods might run"},
		{"test/e2e/node/node.go", "Nodes might run"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(classified.Run, ", "); got != "Pods should run, Jobs should run, Pods should lower an OOM score" {
		t.Errorf("run: %s", got)
	}
	if len(classified.OnMachine) != 1 || classified.OnMachine["Pods should lower an OOM score"] != s.Rules[1] {
		t.Errorf("on a machine: %v", classified.OnMachine)
	}
	if classified.LeftOut[s.Rules[0]] != 1 || classified.LeftOut[s.Rules[3]] != 2 {
		t.Errorf("left out: %v; want one Alpha and two of e2e/node", classified.LeftOut)
	}
	_, err = s.Classify([]Test{{"test/e2e/apps/job.go", "Jobs might run"}})
	if err == nil || !strings.Contains(err.Error(), "no rule for 1 tests:\ntest/e2e/apps/job.go: Jobs might run") {
		t.Errorf("Judge = %v of a test that no rule matches", err)
	}
	if got := s.Cause("Pods should fail"); got != "it must" {
		t.Errorf("Cause = %q", got)
	}
}

func TestParseSelectionErrors(t *testing.T) {
	for text, want := range map[string]string{
		"rules: [{run: true}]":                       "rule 1 needs",
		"rules: [{files: a}]":                        "rule 1 needs",
		"rules: [{files: a, run: true, why: b}]":     "rule 1 needs",
		"rules: [{files: a, why: b, machine: c}]":    "rule 1 needs",
		"rules: [{files: a, run: true, wy: b}]":      "wy",
		"rules: [{files: a, run: true}, {tests: (}]": "rule 2 needs",
		"rules: [{files: (, run: true}]":             "rule 1: error parsing",
	} {
		if _, err := parseSelection("small.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseSelection(%s) = %v; want %s", text, err, want)
		}
	}
	for _, suite := range Suites {
		if _, err := suite.Selected(); err != nil {
			t.Error(err)
		}
	}
}
