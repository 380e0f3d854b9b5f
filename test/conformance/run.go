package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"swiftlet/test/bed"
)

// Options are the options of a run.
type Options struct {
	Suite   *Suite
	Side    Side
	Focus   string        // run only tests whose name matches, of those selected
	Skip    string        // run no tests whose name matches; empty: run all
	Tests   []string      // run only these, of those selected
	NotRun  bool          // run only tests without a recorded outcome on this side
	LeftOut bool          // also run tests that the selection leaves out
	Machine bool          // run the tests that need a machine, on a machine
	Procs   int           // number of parallel tests
	Limit   time.Duration // for the whole run
	Out     string        // directory for the suite's log and reports
	Report  io.Writer     // gets a line per finished test
	Trace   io.Writer     // gets the progress of the bed
}

// testHandler is the runtime handler of RuntimeClass tests.
const testHandler = "test-handler"

// Run starts a bed with one node, runs the suite on it and returns the outcomes. A failed test is
// not an error.
func Run(ctx context.Context, p *Programs, options Options) (outcomes []Outcome, err error) {
	names, err := p.Choose(ctx, options)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	if err := os.MkdirAll(options.Out, 0o755); err != nil {
		return nil, fmt.Errorf("make report directory: %w", err)
	}
	b, err := options.startBed(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, saveLogs(b.Logs(), options.Out), b.Close()) }()
	registry, err := b.StartRegistry("", "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, registry.Close()) }()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	set, err := p.Images(ctx, b.PauseProgram(), names)
	if err != nil {
		return nil, err
	}
	if err := push(ctx, registry, set); err != nil {
		return nil, err
	}
	if options.Side == Lone {
		return runLone(ctx, b, registry, p, set, names, options)
	}
	if options.Machine {
		err = startMachine(ctx, b, registry, options, stop)
	} else {
		err = startNode(ctx, b, registry, set, options)
	}
	if err != nil {
		return nil, err
	}
	return runSuite(ctx, clusterTarget(b), p, names, options)
}

// startBed starts what the node needs: a control plane, unless the node is its own.
func (o Options) startBed(ctx context.Context) (*bed.Bed, error) {
	if o.Side == Lone {
		return bed.StartNetwork(ctx, o.Trace)
	}
	return bed.Start(ctx, o.Trace)
}

// kubelet is the kubelet of the side.
func (o Options) kubelet() bed.KubeletKind {
	if o.Side == Reference {
		return bed.Reference
	}
	return bed.Ours
}

// startNode starts a node with the suite's images.
func startNode(ctx context.Context, b *bed.Bed, registry *bed.Registry, set []Image, options Options) error {
	node, err := b.AddNode(ctx, "node-1")
	if err != nil {
		return err
	}
	if options.Side != Cluster {
		if err := node.RouteAPIService(ctx); err != nil {
			return err
		}
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
	}
	if err := node.StartKubelet(ctx, bed.KubeletOptions{Kind: options.kubelet()}); err != nil {
		return err
	}
	if err := node.WaitReady(ctx); err != nil || options.Side != Cluster {
		return err
	}
	return node.StartServices(ctx)
}

// push copies the images to the registry.
func push(ctx context.Context, registry *bed.Registry, set []Image) error {
	for _, image := range set {
		loaded, err := image.Load()
		if err != nil {
			return err
		}
		if _, err := registry.Push(ctx, image.Path, loaded); err != nil {
			return err
		}
	}
	return nil
}

// saveLogs copies the logs of the bed to the output directory.
func saveLogs(from, out string) error { return copyLogs(from, filepath.Join(out, "logs")) }

// copyLogs replaces a directory.
func copyLogs(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("keep logs: %w", err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("keep logs: %w", err)
	}
	return nil
}
