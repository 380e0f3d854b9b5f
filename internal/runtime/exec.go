package runtime

import (
	"context"
	"time"
)

// Exec runs a command in a container and waits for it, for at most timeout if that is
// positive. A command that fails is a result, not an error.
func (r *Runtime) Exec(ctx context.Context, id string, command []string, timeout time.Duration) (output []byte, exitCode int, err error) {
	result, err := r.deps.CRI.ExecSync(ctx, id, command, timeout)
	if err != nil {
		return nil, 0, err
	}
	return append(result.Stdout, result.Stderr...), int(result.ExitCode), nil
}
