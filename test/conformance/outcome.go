package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// What came of a test. One that found that it does not apply here was skipped by itself.
const (
	passed  = "passed"
	failed  = "failed"
	skipped = "skipped"
)

// Outcome is what came of one test.
type Outcome struct {
	Test    string
	State   string
	Seconds float64
	Message string // why it failed, or was skipped
}

// ginkgoReport is the part of ginkgo's JSON report that is read.
type ginkgoReport struct {
	SpecReports []struct {
		ContainerHierarchyTexts []string
		LeafNodeType            string
		LeafNodeText            string
		State                   string
		NumAttempts             int
		RunTime                 time.Duration
		Failure                 struct{ Message string }
	}
}

// readReport returns the tests that were begun; those that filters left out have no attempt.
func readReport(path string) ([]Outcome, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	var reports []ginkgoReport
	if err := json.Unmarshal(data, &reports); err != nil {
		return nil, fmt.Errorf("read report %s: %w", path, err)
	}
	var outcomes []Outcome
	for _, report := range reports {
		for _, spec := range report.SpecReports {
			if spec.NumAttempts == 0 || (spec.LeafNodeType != "It" && spec.State == passed) {
				continue
			}
			name := strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " ")
			if spec.LeafNodeType != "It" { // a failed preparation of the whole suite
				name = spec.LeafNodeType
			}
			outcomes = append(outcomes, Outcome{Test: name, State: state(spec.State), Seconds: spec.RunTime.Seconds(), Message: spec.Failure.Message})
		}
	}
	return outcomes, nil
}

// state counts panics, time-outs and interrupts as failures.
func state(ginkgo string) string {
	if ginkgo == passed || ginkgo == skipped {
		return ginkgo
	}
	return failed
}
