package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Tests run in random order, as some wait and others use CPU. With this seed the longest ones, of
// up to half an hour, start early.
const randomize, seed = "--randomize-all", "--seed=29"

// runSuite runs e2e.test and reads its report. Its exit code is ignored if there is a report: it
// only says that a test failed.
func runSuite(ctx context.Context, t target, p *Programs, names []string, options Options) ([]Outcome, error) {
	log, err := os.Create(filepath.Join(options.Out, "e2e.log"))
	if err != nil {
		return nil, fmt.Errorf("run suite: %w", err)
	}
	defer log.Close()
	report := filepath.Join(options.Out, "report.json")
	if err := os.RemoveAll(report); err != nil {
		return nil, fmt.Errorf("run suite: %w", err)
	}
	cmd := t.command(ctx, append([]string{p.path("ginkgo")}, flags(t, p, names, options)...)...)
	shown := &progress{w: options.Report, side: string(options.Side), names: map[string]bool{}}
	for _, name := range names {
		shown.names[name] = true
	}
	cmd.Stdout = io.MultiWriter(log, shown)
	cmd.Stderr = log
	began := time.Now()
	runErr := runGroup(cmd)
	outcomes, err := ReadReport(report)
	if len(outcomes) == 0 {
		outcomes = shown.done
	}
	if err != nil {
		return outcomes, errors.Join(fmt.Errorf("run suite: see %s: %w", log.Name(), err), runErr)
	}
	if ctx.Err() != nil {
		return outcomes, fmt.Errorf("run suite: interrupted after %.0f s: %w", time.Since(began).Seconds(), context.Cause(ctx))
	}
	if time.Since(began) >= options.Limit {
		return outcomes, fmt.Errorf("run suite: interrupted after %.0f s", time.Since(began).Seconds())
	}
	return outcomes, nil
}

// flags are the flags of ginkgo and, after the program, of the suite.
func flags(t target, p *Programs, names []string, options Options) []string {
	args := append([]string{
		fmt.Sprintf("--procs=%d", options.Procs),
		fmt.Sprintf("--timeout=%s", options.Limit),
		"--no-color", "-v", "--keep-going", randomize, seed,
		"--output-dir=" + options.Out, "--json-report=report.json", "--junit-report=junit.xml",
	}, focusOn(names)...)
	return slices.Concat(args, []string{p.path("e2e.test"), "--",
		"--kubeconfig=" + t.kubeconfig, "--kubectl-path=" + t.kubectl,
		"--provider=skeleton", "--num-nodes=1", "--minStartupPods=0", "--allowed-not-ready-nodes=0",
	}, t.flags)
}

// runGroup runs ginkgo in its own process group. All its processes are interrupted together, so that
// they can clean up and report, and are killed at the end.
func runGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 2 * time.Minute
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start ginkgo: %w", err)
	}
	defer syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails if all have exited, as expected
	return cmd.Wait()
}
