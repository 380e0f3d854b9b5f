// Command scale measures what many nodes cost an API server: ours in one process, and ours beside kubemark's
// in a process each. Ctrl-C ends the run; what was measured until then is kept.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"swiftlet/bench"
	"swiftlet/test/scale"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var (
		together = flag.String("nodes", "100,300,1000", "numbers of our nodes in one process")
		compared = flag.String("compare", "50,100", "numbers of kubemark's and our nodes in a process each")
		pods     = flag.Int("pods", 30, "pods per node")
		fewer    = flag.Int("compare-pods", 10, "pods per node where kubemark is compared: it needs more CPU than there is")
		storms   = flag.Bool("storms", true, "also a changed ConfigMap, a restart of all agents and an outage, with the last number of -nodes")
		hollow   = flag.String("hollow", "bin/hollow", "the program of our nodes")
		out      = flag.String("out", "test/scale/results", "directory of the results")
		idle     = flag.Duration("idle", time.Minute, "length of the idle phase")
		outage   = flag.Duration("outage", 2*time.Minute, "how long the API server is away")
		resets   = flag.Bool("resets", false, "reset connections while the API server is away, as a load balancer does")
		limit    = flag.Duration("limit", 20*time.Minute, "longest time that a phase may take")
		logs     = flag.String("logs", "", "directory for the logs of each run")
		publish  = flag.Bool("publish", false, "write the table to docs/performance.md")
		from     = flag.String("from", "", "measure nothing; use this result instead")
	)
	flag.Parse()
	if *from != "" {
		result, err := scale.ReadJSON(*from)
		if err != nil {
			return err
		}
		return report(result, *publish)
	}
	specs, err := plan(*together, *compared, scale.Sizes{Pods: *pods, ComparedPods: *fewer, Storms: *storms})
	if err != nil {
		return err
	}
	options := scale.Options{Programs: scale.Programs{Hollow: *hollow}, Idle: *idle, Outage: *outage, Resets: *resets, Limit: *limit, Logs: *logs}
	if slices.ContainsFunc(specs, func(s scale.Spec) bool { return s.Kind == scale.Kubemark }) {
		dir, err := output(ctx, "hack/build-kubemark.sh")
		if err != nil {
			return err
		}
		options.Programs.Kubemark = filepath.Join(dir, "kubemark")
	}
	result, err := measure(ctx, specs, options)
	if result == nil || len(result.Runs) == 0 {
		return err
	}
	result.Finish()
	file, writeErr := result.WriteJSON(*out)
	fmt.Fprintln(os.Stderr, "scale: wrote", file)
	return errors.Join(err, writeErr, report(result, *publish && err == nil))
}

func plan(together, compared string, sizes scale.Sizes) ([]scale.Spec, error) {
	var err error
	if sizes.Together, err = scale.ParseNumbers(together); err != nil {
		return nil, fmt.Errorf("-nodes: %w", err)
	}
	if sizes.Compared, err = scale.ParseNumbers(compared); err != nil {
		return nil, fmt.Errorf("-compare: %w", err)
	}
	return scale.Plan(sizes), nil
}

// measure runs all specs. After a failure it returns what was measured before.
func measure(ctx context.Context, specs []scale.Spec, options scale.Options) (*scale.Result, error) {
	began := time.Now()
	machine, err := bench.ReadMachine()
	if err != nil {
		return nil, err
	}
	result := &scale.Result{Date: began.UTC().Truncate(time.Second), Machine: machine}
	if result.Commit, err = output(ctx, "git", "rev-parse", "--short=12", "HEAD"); err != nil {
		result.Commit = "unknown" // a source archive has no commit
	}
	most := 0
	for _, s := range specs {
		most = max(most, s.Nodes)
	}
	restore, err := scale.RaiseLimits(most)
	if err != nil {
		return nil, err
	}
	for _, s := range specs {
		one, runErr := scale.Measure(ctx, s, options, os.Stderr)
		if one != nil {
			result.Runs = append(result.Runs, one)
		}
		if err = runErr; err != nil {
			err = fmt.Errorf("measure %s with %d nodes: %w", s.Kind, s.Nodes, err)
			break
		}
	}
	result.Minutes = time.Since(began).Minutes()
	return result, errors.Join(err, restore())
}

// report prints the tables. It fails if a goal was not reached.
func report(result *scale.Result, publish bool) error {
	fmt.Printf("\n%s\n%s\n%s\n", result.Markdown(), result.Goals(), result.Caption())
	var err error
	if publish {
		err = result.Publish(".")
	}
	return errors.Join(err, result.Err())
}

func output(ctx context.Context, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("run %s: %w", argv[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
