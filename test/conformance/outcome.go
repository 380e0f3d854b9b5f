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

// interrupted is ginkgo's word for a test that the end of the whole run cut short.
const interrupted = "interrupted"

// Outcome is what came of one test.
type Outcome struct {
	Test    string
	State   string
	First   string // its state at the first try, if the second went otherwise
	Seconds float64
	Message string // why it failed, or was skipped
	Output  string // what it said, if it failed
}

// specReport is the part of ginkgo's report of a test, or of a preparation of all, that is
// read.
type specReport struct {
	ContainerHierarchyTexts    []string
	LeafNodeType               string
	LeafNodeText               string
	LeafNodeLocation           struct{ FileName string }
	State                      string
	NumAttempts                int
	RunTime                    time.Duration
	Failure                    struct{ Message string }
	CapturedGinkgoWriterOutput string
}

func (s specReport) isTest() bool { return s.LeafNodeType == "It" }

func (s specReport) name() string {
	if !s.isTest() {
		return s.LeafNodeType
	}
	return strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " ")
}

// file is a path within the repository, wherever the suite was built.
func (s specReport) file() string {
	path := s.LeafNodeLocation.FileName
	if i := strings.Index(path, "test/e2e/"); i >= 0 {
		return path[i:]
	}
	return path
}

func (s specReport) outcome() Outcome {
	o := Outcome{Test: s.name(), State: state(s.State), Seconds: s.RunTime.Seconds(), Message: s.Failure.Message}
	if o.State == failed {
		o.Output = s.CapturedGinkgoWriterOutput
	}
	return o
}

// ReadReport returns the tests that were begun; those that filters left out have no attempt.
// Of a test that was interrupted because the whole run was, nothing came.
func ReadReport(path string) ([]Outcome, error) {
	specs, err := readSpecs(path)
	if err != nil {
		return nil, err
	}
	var outcomes []Outcome
	for _, spec := range specs {
		if spec.NumAttempts > 0 && spec.State != interrupted && (spec.isTest() || spec.State != passed) {
			outcomes = append(outcomes, spec.outcome())
		}
	}
	return outcomes, nil
}

// readTests returns all that a dry run tells of.
func readTests(path string) ([]Test, error) {
	specs, err := readSpecs(path)
	if err != nil {
		return nil, err
	}
	var tests []Test
	for _, spec := range specs {
		if spec.isTest() {
			tests = append(tests, Test{File: spec.file(), Name: spec.name()})
		}
	}
	return tests, nil
}

func readSpecs(path string) ([]specReport, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	var suites []struct{ SpecReports []specReport }
	if err := json.Unmarshal(data, &suites); err != nil {
		return nil, fmt.Errorf("read report %s: %w", path, err)
	}
	var all []specReport
	for _, suite := range suites {
		all = append(all, suite.SpecReports...)
	}
	return all, nil
}

// state counts panics and time-outs as failures.
func state(ginkgo string) string {
	if ginkgo == passed || ginkgo == skipped {
		return ginkgo
	}
	return failed
}
