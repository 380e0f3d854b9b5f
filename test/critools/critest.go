package critools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"swiftlet/test/bed"
	"swiftlet/test/conformance"
)

// endpoint is containerd's endpoint on a node.
const endpoint = "unix:///run/containerd/containerd.sock"

// RunCritest runs critest on the node and returns the outcome of each test. A failed test is not
// an error. Log and report are written to dir.
func RunCritest(ctx context.Context, p Programs, node *bed.Box, dir string, limit time.Duration) ([]conformance.Outcome, error) {
	log, err := os.Create(filepath.Join(dir, "critest.log"))
	if err != nil {
		return nil, fmt.Errorf("run critest: %w", err)
	}
	defer log.Close()
	cmd := node.Command(ctx, p.path("ginkgo"), "--procs=4", "--timeout="+limit.String(), "--no-color", "--keep-going",
		"--skip=benchmark", "--output-dir="+dir, "--json-report=report.json",
		p.path("critest.test"), "--", "-runtime-endpoint="+endpoint)
	cmd.Stdout, cmd.Stderr = log, log
	runErr := cmd.Run() // an error if a test failed; the report has the details
	outcomes, err := conformance.ReadReport(filepath.Join(dir, "report.json"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("run critest: see %s: %w", log.Name(), err), runErr)
	}
	return outcomes, nil
}
