package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"swiftlet/internal/cri"
)

// checkExec runs the probe's command. The runtime ends it when its time is over, so no
// process is left behind.
func (c *Checks) checkExec(ctx context.Context, t Target) Answer {
	limit := time.Duration(max(t.Probe.TimeoutSeconds, 1)) * time.Second
	// The runtime enforces the limit itself; our own deadline must not beat it to that.
	result, err := c.exec.ExecSync(context.WithoutCancel(ctx), t.ContainerID, t.Probe.Exec.Command, limit)
	switch {
	case cri.IsTimeout(err):
		return failed(fmt.Sprintf("command timed out: %q timed out after %s", strings.Join(t.Probe.Exec.Command, " "), limit))
	case err != nil:
		return unsure(errors.New(cri.Text(err)))
	}
	output := string(result.Stdout) + string(result.Stderr)
	if result.ExitCode != 0 {
		return failed(output)
	}
	return passed(output)
}
