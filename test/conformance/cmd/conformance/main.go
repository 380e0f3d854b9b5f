// Command conformance runs upstream's end-to-end tests on a kubelet in the bed.
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

func main() {
	var options conformance.Options
	kubelet := flag.String("kubelet", string(bed.Ours), "whose kubelet the node runs: ours or reference")
	flag.StringVar(&options.Focus, "focus", "", "run only tests whose name matches this regular expression")
	flag.StringVar(&options.Labels, "labels", "", "label filter in place of the selection's")
	flag.StringVar(&options.Files, "files", "", "files to take tests from, in place of the selection's")
	flag.IntVar(&options.Procs, "procs", 4, "how many tests run at a time")
	flag.DurationVar(&options.Limit, "limit", 90*time.Minute, "how long the run may take")
	flag.StringVar(&options.Out, "out", "", "directory for logs and reports (bin/conformance/KUBELET)")
	record := flag.Bool("record", false, "keep the outcomes in test/conformance/results and docs/conformance.md")
	flag.Parse()
	options.Kubelet = bed.KubeletKind(*kubelet)
	options.Report, options.Trace = os.Stdout, os.Stderr
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, options, *record); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, options conformance.Options, record bool) error {
	programs, err := conformance.FindPrograms(ctx, os.Stderr)
	if err != nil {
		return err
	}
	if options.Out == "" {
		options.Out = filepath.Join(programs.Root, "bin", "conformance", string(options.Kubelet))
	}
	began := time.Now()
	outcomes, err := conformance.Run(ctx, programs, options)
	if err != nil {
		return err
	}
	if record {
		if err := recordAll(ctx, programs, options.Kubelet, outcomes, began); err != nil {
			return err
		}
	}
	return summarize(outcomes, options, time.Since(began))
}

func recordAll(ctx context.Context, programs *conformance.Programs, kubelet bed.KubeletKind, outcomes []conformance.Outcome, began time.Time) error {
	selection, err := conformance.Selected()
	if err != nil {
		return err
	}
	selected, err := selection.Names(ctx, programs)
	if err != nil {
		return err
	}
	return conformance.Record(programs, kubelet, outcomes, selected, began)
}

func summarize(outcomes []conformance.Outcome, options conformance.Options, took time.Duration) error {
	counts, failures := conformance.Summarize(outcomes)
	for _, f := range failures {
		fmt.Printf("\nFAILED %s\n%s\n", f.Test, f.Message)
	}
	fmt.Printf("\n%s: %d passed, %d failed, %d skipped in %.0f s; reports in %s\n",
		options.Kubelet, counts["passed"], counts["failed"], counts["skipped"], took.Seconds(), options.Out)
	if len(outcomes) == 0 {
		return errors.New("no test matches")
	}
	if len(failures) > 0 {
		return fmt.Errorf("%d tests failed", len(failures))
	}
	return nil
}
