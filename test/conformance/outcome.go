package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// The states of tests. A test that does not apply to the node skips itself.
const (
	passed  = "passed"
	failed  = "failed"
	skipped = "skipped"
)

// interrupted is ginkgo's state of a test that was cut short by the end of the run.
const interrupted = "interrupted"

// suiteTimeout is ginkgo's message of a test that the time limit of the run has ended.
const suiteTimeout = "A suite timeout occurred"

// Outcome is the outcome of one test.
type Outcome struct {
	Test    string
	State   string
	First   string // state of the first try, if that of the retry differs
	Seconds float64
	Message string // why it failed, or was skipped
	Output  string // its output, if it failed
}

// specReport has the fields of ginkgo's report of a test or of a suite node such as BeforeSuite.
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

// cutShort reports whether the end of the run ended the test.
func (s specReport) cutShort() bool {
	return s.State == interrupted || s.Failure.Message == suiteTimeout
}

func (s specReport) name() string {
	if !s.isTest() {
		return s.LeafNodeType
	}
	return strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " ")
}

// file is the path within upstream's repository.
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

// ReadReport returns the outcomes of the tests that were run. It leaves out tests that filters
// excluded, which have no attempt, and tests that the end of the run interrupted.
func ReadReport(path string) ([]Outcome, error) {
	specs, err := readSpecs(path)
	if err != nil {
		return nil, err
	}
	var outcomes []Outcome
	for _, spec := range specs {
		if spec.NumAttempts > 0 && !spec.cutShort() && (spec.isTest() || spec.State != passed) {
			outcomes = append(outcomes, spec.outcome())
		}
	}
	return outcomes, nil
}

// readTests returns all tests of a dry run.
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

// state maps ginkgo's states to ours: panics and time-outs are failures.
func state(ginkgo string) string {
	if ginkgo == passed || ginkgo == skipped {
		return ginkgo
	}
	return failed
}
