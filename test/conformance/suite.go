package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
)

// Tests lists all that the suite has, in the order in which it runs them.
func (p *Programs) Tests(ctx context.Context) ([]Test, error) {
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return nil, fmt.Errorf("list tests: %w", err)
	}
	defer os.RemoveAll(dir)
	said, err := exec.CommandContext(ctx, p.path("ginkgo"), "--dry-run", "--no-color", mixed, seed,
		"--output-dir="+dir, "--json-report=report.json", p.path("e2e.test")).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("list tests: %w: %s", err, said)
	}
	return readTests(filepath.Join(dir, "report.json"))
}

// Judged is what the selection says of the suite's tests.
func (p *Programs) Judged(ctx context.Context) (Judged, error) {
	selection, err := Selected()
	if err != nil {
		return Judged{}, err
	}
	tests, err := p.Tests(ctx)
	if err != nil {
		return Judged{}, err
	}
	return selection.Judge(tests)
}

// Choose names the tests that the options ask for.
func (p *Programs) Choose(ctx context.Context, options Options) ([]string, error) {
	focus, err := regexp.Compile(options.Focus)
	if err != nil {
		return nil, fmt.Errorf("choose tests: %w", err)
	}
	results, err := readResults(p.results(options.Kubelet))
	if err != nil {
		return nil, err
	}
	names, err := p.candidates(ctx, options)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		_, run := results[name]
		return !focus.MatchString(name) || options.NotRun && run || len(options.Tests) > 0 && !slices.Contains(options.Tests, name)
	})
	if len(names) == 0 && !options.NotRun { // otherwise all have been
		return nil, errors.New("choose tests: none matches")
	}
	return names, nil
}

// candidates are the tests that may be run at all.
func (p *Programs) candidates(ctx context.Context, options Options) ([]string, error) {
	if !options.LeftOut {
		judged, err := p.Judged(ctx)
		return judged.Run, err
	}
	tests, err := p.Tests(ctx)
	var names []string
	for _, test := range tests {
		names = append(names, test.Name)
	}
	return names, err
}

// focusOn is flags of ginkgo's, which runs what matches any of them.
func focusOn(names []string) []string {
	var flags []string
	for _, name := range names {
		flags = append(flags, "--focus="+regexp.QuoteMeta(" "+name)+"$")
	}
	return flags
}
