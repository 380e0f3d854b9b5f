package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"swiftlet/test/bed"
)

// Options is one run of the suite.
type Options struct {
	Kubelet bed.KubeletKind
	Focus   string        // run only tests whose name matches, of those selected
	Tests   []string      // run only these, of those selected
	NotRun  bool          // run only those that have no recorded outcome on this kubelet
	Labels  string        // in place of the selection's labels
	Files   string        // in place of the selection's files
	Procs   int           // how many tests run at a time
	Limit   time.Duration // for the whole run
	Out     string        // directory for the suite's log and reports
	Report  io.Writer     // is told of each test as it ends
	Trace   io.Writer     // is told what the bed does
}

// focus is flags of ginkgo's, which runs what matches any of them.
func (o Options) focus() []string {
	var flags []string
	if o.Focus != "" {
		flags = append(flags, "--focus="+o.Focus)
	}
	for _, test := range o.Tests {
		flags = append(flags, "--focus="+regexp.QuoteMeta(" "+test)+"$")
	}
	return flags
}

// testHandler is the runtime handler that tests of RuntimeClass ask for.
const testHandler = "test-handler"

// Run starts a bed with one node, runs the suite on it and returns the outcomes. That
// tests fail is no error.
func Run(ctx context.Context, p *Programs, options Options) (outcomes []Outcome, err error) {
	selection, err := Selected()
	if err != nil {
		return nil, err
	}
	if options.Labels != "" {
		selection.Labels = options.Labels
	}
	if options.Files != "" {
		selection.Files = []string{options.Files}
	}
	if options.NotRun {
		if options.Tests, err = selection.notRun(ctx, p, options.Kubelet); err != nil || len(options.Tests) == 0 {
			return nil, err
		}
	}
	if err := os.MkdirAll(options.Out, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of reports: %w", err)
	}
	b, err := bed.Start(ctx, options.Trace)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, keepLogs(b.Logs(), options.Out), b.Close()) }()
	registry, err := b.StartRegistry("", "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, registry.Close()) }()
	if err := startNode(ctx, b, registry, p, options); err != nil {
		return nil, err
	}
	return runSuite(ctx, b, p, selection, options)
}

// startNode brings up a node that finds the suite's images.
func startNode(ctx context.Context, b *bed.Bed, registry *bed.Registry, p *Programs, options Options) error {
	set, err := p.Images(ctx, b.PauseProgram())
	if err != nil {
		return err
	}
	node, err := b.AddNode(ctx, "node-1")
	if err != nil {
		return err
	}
	if err := node.LeadToAPI(ctx); err != nil {
		return err
	}
	if err := node.Mirror(Registry, registry); err != nil {
		return err
	}
	if err := node.StopContainerd(); err != nil {
		return err
	}
	node.AddRuntime(testHandler)
	if err := node.StartContainerd(ctx); err != nil {
		return err
	}
	for _, image := range set {
		if err := node.ImportImage(ctx, image.Archive); err != nil {
			return err
		}
		loaded, err := image.Load()
		if err != nil {
			return err
		}
		if _, err := registry.Push(ctx, image.Path, loaded); err != nil {
			return err
		}
	}
	if err := node.StartKubelet(ctx, bed.KubeletOptions{Kind: options.Kubelet}); err != nil {
		return err
	}
	return node.WaitReady(ctx)
}

// runSuite runs e2e.test to its end. Its exit code says only that a test failed, which the
// report says better; without a report there is an error.
func runSuite(ctx context.Context, b *bed.Bed, p *Programs, selection *Selection, options Options) ([]Outcome, error) {
	log, err := os.Create(filepath.Join(options.Out, "e2e.log"))
	if err != nil {
		return nil, fmt.Errorf("run the suite: %w", err)
	}
	defer log.Close()
	report := filepath.Join(options.Out, "report.json")
	if err := os.RemoveAll(report); err != nil {
		return nil, fmt.Errorf("run the suite: %w", err)
	}
	args := append([]string{
		fmt.Sprintf("--procs=%d", options.Procs),
		fmt.Sprintf("--timeout=%s", options.Limit),
		"--no-color", "-v", "--keep-going",
		"--output-dir=" + options.Out, "--json-report=report.json", "--junit-report=junit.xml",
	}, selection.flags()...)
	args = append(args, options.focus()...)
	args = append(args, p.path("e2e.test"), "--",
		"--kubeconfig="+b.ControlPlane.Kubeconfig,
		"--kubectl-path="+filepath.Join(b.ToolDir(), "kubectl"),
		"--provider=skeleton", "--num-nodes=1", "--minStartupPods=0", "--allowed-not-ready-nodes=0",
	)
	cmd := exec.CommandContext(ctx, p.path("ginkgo"), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it cleans up and reports
	cmd.WaitDelay = time.Minute
	cmd.Stdout = io.MultiWriter(log, &progress{w: options.Report, who: string(options.Kubelet)})
	cmd.Stderr = log
	began := time.Now()
	ended := cmd.Run()
	outcomes, err := ReadReport(report)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("run the suite: see %s: %w", log.Name(), err), ended)
	}
	if ctx.Err() != nil || time.Since(began) >= options.Limit {
		return outcomes, fmt.Errorf("run the suite: it was interrupted after %.0f s", time.Since(began).Seconds())
	}
	return outcomes, nil
}

// keepLogs copies what the bed's programs said, for whoever looks into a failure.
func keepLogs(from, out string) error {
	to := filepath.Join(out, "logs")
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("keep logs: %w", err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("keep logs: %w", err)
	}
	return nil
}
