// Package program runs programs of the node with a deadline.
package program

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"swiftlet/internal/boundedio"
	"swiftlet/internal/contain"
)

// killWait is how long to wait for the end of a program that was killed. One that hangs in the kernel, such as
// on a file system whose server is gone, does not end.
const killWait = 2 * time.Second

// hanging has the programs that were killed and have not ended. All packages share the limit of their number, so a
// command is not repeated while it hangs: the retries of one volume would use up the limit of all.
var hanging contain.Calls

// keyOf identifies a command. Arguments may be secret, and errors show the key.
func keyOf(name string, args []string) string {
	return fmt.Sprintf("%s %x", name, sha256.Sum256([]byte(strings.Join(args, "\x00"))))
}

// TimeoutError is the error of a program that was killed because it took too long.
type TimeoutError struct {
	Program string
	After   time.Duration
	// Unkillable: it has not ended, as it hangs in the kernel.
	Unkillable bool
}

func (e *TimeoutError) Error() string {
	if e.Unkillable {
		return fmt.Sprintf("%s: timed out after %v and cannot be killed: it hangs in the kernel", e.Program, e.After)
	}
	return fmt.Sprintf("%s: timed out after %v and was killed", e.Program, e.After)
}

// Run runs a program and returns its output, also that of a failed one. At the timeout, and when ctx is done, it
// kills the program and its children. It returns in any case, also if the program cannot be killed. The same command
// runs once at a time.
func Run(ctx context.Context, timeout time.Duration, name string, args ...string) ([]byte, error) {
	return RunWithInput(ctx, timeout, "", name, args...)
}

// RunWithInput is Run for a program that reads the input.
func RunWithInput(ctx context.Context, timeout time.Duration, input, name string, args ...string) ([]byte, error) {
	return run(ctx, timeout, input, func(cmd *exec.Cmd) ([]byte, error) { return boundedio.CombinedOutput(cmd, boundedio.Small) }, name, args)
}

// Output is Run, and returns only what the program writes to its standard output. More than the limit is an error.
func Output(ctx context.Context, timeout time.Duration, limit int, name string, args ...string) ([]byte, error) {
	return run(ctx, timeout, "", func(cmd *exec.Cmd) ([]byte, error) { return boundedio.Output(cmd, limit) }, name, args)
}

func run(ctx context.Context, timeout time.Duration, input string, read func(*exec.Cmd) ([]byte, error), name string, args []string) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killWait
	if input != "" {
		cmd.Stdin = strings.NewReader(input)
	}
	// The command does not return while the process exists, so wait aside.
	patience, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(limited, func() {
		timer := time.AfterFunc(killWait+time.Second, stop)
		context.AfterFunc(patience, func() { timer.Stop() })
	})()
	out, err := contain.Await(patience, &hanging, keyOf(name, slices.Concat(args, []string{input})), func() ([]byte, error) { return read(cmd) })
	var hang *contain.HangError
	switch {
	case errors.As(err, &hang):
		return nil, &TimeoutError{Program: name, After: timeout, Unkillable: true}
	case ctx.Err() != nil && err != nil:
		return out, ctx.Err()
	case limited.Err() != nil && err != nil:
		return out, &TimeoutError{Program: name, After: timeout}
	}
	return out, err
}
