package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"swiftlet/internal/cri"
)

// checkExec runs the probe's command. The runtime ends it when its time is over, or when ctx
// ends, so no process is left behind.
func (c *Checks) checkExec(ctx context.Context, t Target) Answer {
	limit := timeout(t.Probe)
	result, err := c.exec.ExecSync(ctx, t.ContainerID, t.Probe.Exec.Command, limit)
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
