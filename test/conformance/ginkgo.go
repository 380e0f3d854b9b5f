package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"swiftlet/test/bed"
)

// The tests are mixed, for some only wait and others compute, the same way each time: with
// this seed those that take longest, half an hour one of them, begin soon.
const mixed, seed = "--randomize-all", "--seed=29"

// runSuite runs e2e.test to its end. Its exit code says only that a test failed, which the
// report says better; without a report there is an error.
func runSuite(ctx context.Context, b *bed.Bed, p *Programs, names []string, options Options) ([]Outcome, error) {
	log, err := os.Create(filepath.Join(options.Out, "e2e.log"))
	if err != nil {
		return nil, fmt.Errorf("run the suite: %w", err)
	}
	defer log.Close()
	report := filepath.Join(options.Out, "report.json")
	if err := os.RemoveAll(report); err != nil {
		return nil, fmt.Errorf("run the suite: %w", err)
	}
	cmd := exec.CommandContext(ctx, p.path("ginkgo"), flags(b, p, names, options)...)
	cmd.Stdout = io.MultiWriter(log, &progress{w: options.Report, who: string(options.Kubelet)})
	cmd.Stderr = log
	began := time.Now()
	ended := runGroup(cmd)
	outcomes, err := ReadReport(report)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("run the suite: see %s: %w", log.Name(), err), ended)
	}
	if ctx.Err() != nil || time.Since(began) >= options.Limit {
		return outcomes, fmt.Errorf("run the suite: it was interrupted after %.0f s", time.Since(began).Seconds())
	}
	return outcomes, nil
}

// flags are ginkgo's, and behind the program the suite's.
func flags(b *bed.Bed, p *Programs, names []string, options Options) []string {
	args := append([]string{
		fmt.Sprintf("--procs=%d", options.Procs),
		fmt.Sprintf("--timeout=%s", options.Limit),
		"--no-color", "-v", "--keep-going", mixed, seed,
		"--output-dir=" + options.Out, "--json-report=report.json", "--junit-report=junit.xml",
	}, focusOn(names)...)
	return append(args, p.path("e2e.test"), "--",
		"--kubeconfig="+b.ControlPlane.Kubeconfig,
		"--kubectl-path="+filepath.Join(b.ToolDir(), "kubectl"),
		"--provider=skeleton", "--num-nodes=1", "--minStartupPods=0", "--allowed-not-ready-nodes=0",
	)
}

// runGroup runs ginkgo and the processes that it starts as a group of their own: they are
// interrupted together, which lets them clean up and report, and none outlives the run.
func runGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 2 * time.Minute
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start ginkgo: %w", err)
	}
	defer syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails if all have ended, as they should
	return cmd.Wait()
}
