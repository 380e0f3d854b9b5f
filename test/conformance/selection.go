package conformance

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"

	"swiftlet/test/bed"
)

//go:embed selection.yaml
var selectionFile []byte

// Selection says which of the suite's tests to run.
type Selection struct {
	Labels  string    `json:"labels"` // ginkgo's label filter
	Files   []string  `json:"files"`
	LeftOut []LeftOut `json:"leftOut"`
	// Failures say why tests that are run fail.
	Failures []LeftOut `json:"failures"`
}

// LeftOut is tests of the chosen files that are an exception, those of some files or some
// names, with the reason.
type LeftOut struct {
	Files string `json:"files,omitempty"`
	Tests string `json:"tests,omitempty"`
	Why   string `json:"why"`
}

// Cause says why a test fails, "" where that is not known.
func (s *Selection) Cause(test string) string {
	for _, f := range s.Failures {
		if f.Tests != "" && regexp.MustCompile(f.Tests).MatchString(test) {
			return f.Why
		}
	}
	return ""
}

// Selected is the selection of selection.yaml.
func Selected() (*Selection, error) {
	s := &Selection{}
	if err := yaml.UnmarshalStrict(selectionFile, s); err != nil {
		return nil, fmt.Errorf("read selection.yaml: %w", err)
	}
	for i, out := range slices.Concat(s.LeftOut, s.Failures) {
		if out.Why == "" || (out.Files == "") == (out.Tests == "") {
			return nil, fmt.Errorf("read selection.yaml: exception %d needs files or tests, and why", i)
		}
		if _, err := regexp.Compile(out.Files + out.Tests); err != nil {
			return nil, fmt.Errorf("read selection.yaml: exception %d: %w", i, err)
		}
	}
	return s, nil
}

// flags are ginkgo's.
func (s *Selection) flags() []string {
	flags := []string{"--label-filter=" + s.Labels}
	for _, file := range s.Files {
		flags = append(flags, "--focus-file="+file)
	}
	for _, out := range s.LeftOut {
		if out.Files != "" {
			flags = append(flags, "--skip-file="+out.Files)
		} else {
			flags = append(flags, "--skip="+out.Tests)
		}
	}
	return flags
}

// Names lists the tests that the selection chooses.
func (s *Selection) Names(ctx context.Context, p *Programs) ([]string, error) {
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return nil, fmt.Errorf("list tests: %w", err)
	}
	defer os.RemoveAll(dir)
	args := append([]string{"--dry-run", "--no-color", "--output-dir=" + dir, "--json-report=report.json"}, s.flags()...)
	said, err := exec.CommandContext(ctx, p.path("ginkgo"), append(args, p.path("e2e.test"))...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("list tests: %w: %s", err, said)
	}
	return readNames(filepath.Join(dir, "report.json"))
}

// notRun are those of the chosen tests that have no recorded outcome on this kubelet.
func (s *Selection) notRun(ctx context.Context, p *Programs, kubelet bed.KubeletKind) ([]string, error) {
	results, err := readResults(p.results(kubelet))
	if err != nil {
		return nil, err
	}
	names, err := s.Names(ctx, p)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(test string) bool {
		_, run := results[test]
		return run
	}), nil
}
