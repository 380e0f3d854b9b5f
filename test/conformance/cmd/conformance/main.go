// Command conformance runs upstream's end-to-end tests in the bed, on both kubelets or on one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"swiftlet/test/bed"
	"swiftlet/test/conformance"
)

// both is the value of -kubelet that runs and compares both.
const both = "both"

func main() {
	var options conformance.Options
	kubelet := flag.String("kubelet", both, "kubelet to test: ours, reference, or both at the same time")
	flag.StringVar(&options.Focus, "focus", "", "run only tests whose name matches this regular expression")
	flag.BoolVar(&options.LeftOut, "left-out", false, "run also tests that the selection leaves out")
	flag.BoolVar(&options.NotRun, "not-run", false, "run only tests that have no recorded outcome")
	flag.BoolVar(&options.Machine, "machine", false, "run the tests that need a node with its own kernel, on one")
	flag.IntVar(&options.Procs, "procs", 14, "number of parallel tests on a node")
	flag.DurationVar(&options.Limit, "limit", 90*time.Minute, "how long the run may take")
	flag.StringVar(&options.Out, "out", "", "directory for logs and reports (bin/conformance)")
	list := flag.Bool("list", false, "list the tests and run none")
	smoke := flag.Bool("smoke", false, "run the tests of smoke.txt, all of which must pass")
	record := flag.Bool("record", false, "record the outcomes in test/conformance/results and docs/conformance.md")
	flag.Parse()
	if *smoke {
		options.Tests = conformance.Smoke()
	}
	options.Report, options.Trace = os.Stdout, os.Stderr
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	action := func() error { return run(ctx, options, *kubelet, *record) }
	if *list {
		options.Kubelet = bed.KubeletKind(*kubelet)
		action = func() error { return listTests(ctx, options) }
	}
	if err := action(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, options conformance.Options, kubelet string, record bool) error {
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
	all, err := outcomes(ctx, programs, options, kubelet)
	err = errors.Join(err, printChanges(programs, all))
	if record {
		err = errors.Join(err, recordAll(context.WithoutCancel(ctx), programs, all, began)) // also after an interrupt
	}
	fmt.Printf("\nin %.0f s; reports in %s\n", time.Since(began).Seconds(), options.Out)
	if err != nil {
		return err
	}
	if kubelet == both {
		return compare(all, options)
	}
	return summarize(all[bed.KubeletKind(kubelet)], options)
}

func outcomes(ctx context.Context, programs *conformance.Programs, options conformance.Options, kubelet string) (map[bed.KubeletKind][]conformance.Outcome, error) {
	if kubelet == both {
		return conformance.RunBoth(ctx, programs, options)
	}
	options.Kubelet = bed.KubeletKind(kubelet)
	options.Out = filepath.Join(options.Out, kubelet)
	outcomes, err := conformance.Run(ctx, programs, options)
	return map[bed.KubeletKind][]conformance.Outcome{options.Kubelet: outcomes}, err
}

func recordAll(ctx context.Context, programs *conformance.Programs, all map[bed.KubeletKind][]conformance.Outcome, began time.Time) error {
	classified, err := programs.Classification(ctx)
	if err != nil {
		return err
	}
	for kubelet, outcomes := range all {
		if err := conformance.Record(programs, kubelet, outcomes, classified, began); err != nil {
			return err
		}
	}
	return nil
}
