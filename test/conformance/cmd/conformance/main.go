// Command conformance runs upstream's end-to-end tests in the bed, on both sides of a suite or on one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"swiftlet/test/conformance"
)

// both is the value of -side that runs and compares both.
const both = "both"

func main() {
	var options conformance.Options
	suite := flag.String("suite", conformance.Kubelets.Name, "what to compare: kubelets, or a lone node with a cluster (lone)")
	side := flag.String("side", both, "kubelet to test, ours or reference, or with -suite lone node to test, lone or cluster; or both at the same time")
	flag.StringVar(&options.Focus, "focus", "", "run only tests whose name matches this regular expression")
	flag.StringVar(&options.Skip, "skip", "", "run no tests whose name matches this regular expression")
	flag.BoolVar(&options.LeftOut, "left-out", false, "run also tests that the selection leaves out")
	flag.BoolVar(&options.NotRun, "not-run", false, "run only tests that have no recorded outcome")
	flag.BoolVar(&options.Machine, "machine", false, "run the tests that need a node with its own kernel, on one")
	flag.IntVar(&options.Procs, "procs", 0, "number of parallel tests on a node; 0: 14, or 4 with -suite lone")
	flag.DurationVar(&options.Limit, "limit", 90*time.Minute, "how long the run may take")
	flag.StringVar(&options.Out, "out", "", "directory for logs and reports (bin/conformance)")
	list := flag.Bool("list", false, "list the tests and run none")
	smoke := flag.Bool("smoke", false, "run the tests of smoke.txt, all of which must pass")
	record := flag.Bool("record", false, "record the outcomes in test/conformance/results, and write the report in docs")
	flag.Parse()
	if *smoke {
		options.Tests = conformance.Smoke()
	}
	if err := choose(&options, *suite, *side); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	options.Report, options.Trace = os.Stdout, os.Stderr
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	action := func() error { return run(ctx, options, *record) }
	if *list {
		action = func() error { return listTests(ctx, options) }
	}
	if err := action(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// choose sets the suite, and the side unless both are wanted.
func choose(options *conformance.Options, suite, side string) error {
	var err error
	if options.Suite, err = conformance.FindSuite(suite); err != nil {
		return err
	}
	if options.Procs == 0 {
		options.Procs = options.Suite.Procs
	}
	if side == both {
		return nil
	}
	options.Side = conformance.Side(side)
	if !slices.Contains(options.Suite.Sides(), options.Side) {
		return fmt.Errorf("choose side: the suite %s has no side %q", suite, side)
	}
	return nil
}

func run(ctx context.Context, options conformance.Options, record bool) error {
	programs, err := conformance.FindPrograms(ctx, os.Stderr)
	if err != nil {
		return err
	}
	if options.Out == "" {
		options.Out = filepath.Join(programs.Root, "bin", "conformance")
	} else if options.Out, err = filepath.Abs(options.Out); err != nil {
		return fmt.Errorf("find report directory: %w", err)
	}
	began := time.Now()
	all, err := outcomes(ctx, programs, options)
	err = errors.Join(err, printChanges(programs, all))
	if record {
		err = errors.Join(err, recordAll(context.WithoutCancel(ctx), programs, options.Suite, all, began)) // also after an interrupt
	}
	fmt.Printf("\nin %.0f s; reports in %s\n", time.Since(began).Seconds(), options.Out)
	if err != nil {
		return err
	}
	if options.Side == "" {
		return compare(all, options)
	}
	return summarize(all[options.Side], options)
}

func outcomes(ctx context.Context, programs *conformance.Programs, options conformance.Options) (map[conformance.Side][]conformance.Outcome, error) {
	if options.Side == "" {
		return conformance.RunBoth(ctx, programs, options)
	}
	options.Out = filepath.Join(options.Out, string(options.Side))
	outcomes, err := conformance.Run(ctx, programs, options)
	return map[conformance.Side][]conformance.Outcome{options.Side: outcomes}, err
}

func recordAll(ctx context.Context, programs *conformance.Programs, suite *conformance.Suite, all map[conformance.Side][]conformance.Outcome, began time.Time) error {
	classified, err := programs.Classification(ctx, suite)
	if err != nil {
		return err
	}
	for side, outcomes := range all {
		if err := conformance.Record(programs, suite, side, outcomes, classified, began); err != nil {
			return err
		}
	}
	return nil
}
