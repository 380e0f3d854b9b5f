package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"swiftlet/internal/clip"
	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// checkExec runs the probe's command. The runtime kills it after the timeout, or when ctx is
// done, so no process is left behind.
func (c *Checks) checkExec(ctx context.Context, t Target) Outcome {
	limit := timeout(t.Probe)
	result, err := c.exec.ExecSync(ctx, t.ContainerID, t.Probe.Exec.Command, limit)
	switch {
	case cri.IsTimeout(err):
		return outcome(pod.Failed, why.ProbeNoReply, fmt.Sprintf("command timed out: %q timed out after %s", clip.Text(strings.Join(t.Probe.Exec.Command, " "), clip.Output/2), limit))
	case err != nil:
		return errored(errors.New(cri.Text(err)))
	}
	output := clip.Text(result.Stdout, clip.Output)
	output += clip.Text(result.Stderr, clip.Output-len(output))
	if result.ExitCode != 0 {
		return failed(output)
	}
	return passed(output)
}
