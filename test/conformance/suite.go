package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
)

// Tests lists all tests of the suite, in the order in which it runs them.
func (p *Programs) Tests(ctx context.Context) ([]Test, error) {
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return nil, fmt.Errorf("list tests: %w", err)
	}
	defer os.RemoveAll(dir)
	out, err := exec.CommandContext(ctx, p.path("ginkgo"), "--dry-run", "--no-color", randomize, seed,
		"--output-dir="+dir, "--json-report=report.json", p.path("e2e.test")).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("list tests: %w: %s", err, out)
	}
	return readTests(filepath.Join(dir, "report.json"))
}

// Classification applies the selection of a suite to all tests.
func (p *Programs) Classification(ctx context.Context, suite *Suite) (Classification, error) {
	selection, err := suite.Selected()
	if err != nil {
		return Classification{}, err
	}
	tests, err := p.Tests(ctx)
	if err != nil {
		return Classification{}, err
	}
	return selection.Classify(tests)
}

// Choose returns the names of the tests that match the options.
func (p *Programs) Choose(ctx context.Context, options Options) ([]string, error) {
	focus, err := regexp.Compile(options.Focus)
	if err != nil {
		return nil, fmt.Errorf("choose tests: %w", err)
	}
	skip, err := regexp.Compile(cmp.Or(options.Skip, "^$"))
	if err != nil {
		return nil, fmt.Errorf("choose tests: %w", err)
	}
	results, err := p.recorded(options.Side)
	if err != nil {
		return nil, err
	}
	names, err := p.candidates(ctx, options)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		_, run := results[name]
		return !focus.MatchString(name) || skip.MatchString(name) || options.NotRun && run || len(options.Tests) > 0 && !slices.Contains(options.Tests, name)
	})
	if len(names) == 0 && !options.NotRun { // with NotRun, all may have been run
		return nil, errors.New("choose tests: none matches")
	}
	return names, nil
}

// candidates are the selected tests of a box or of a machine or, with LeftOut, all tests.
func (p *Programs) candidates(ctx context.Context, options Options) ([]string, error) {
	if !options.LeftOut {
		classified, err := p.Classification(ctx, options.Suite)
		return slices.DeleteFunc(classified.Run, func(name string) bool {
			return (classified.OnMachine[name] != nil) != options.Machine
		}), err
	}
	tests, err := p.Tests(ctx)
	var names []string
	for _, test := range tests {
		names = append(names, test.Name)
	}
	return names, err
}

// focusOn returns --focus flags of ginkgo, which runs tests that match any of them.
func focusOn(names []string) []string {
	var flags []string
	for _, name := range names {
		flags = append(flags, "--focus="+regexp.QuoteMeta(" "+name)+"$")
	}
	return flags
}
