package iptables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"swiftlet/internal/boundedio"
	"swiftlet/internal/clip"
)

var (
	// errRejected is exit code 1: the checked object does not exist, or the command failed.
	errRejected = errors.New("rejected")
	// errLocked is exit code 4: another process holds the lock of the tables.
	errLocked = errors.New("locked")
)

// lockTimeout is how many seconds iptables may wait for the lock.
const lockTimeout = "5"

// commandTimeout kills an iptables that hangs.
const commandTimeout = time.Minute

// run runs iptables. The error contains its output.
func (f *family) run(ctx context.Context, args ...string) error {
	ctx, stop := context.WithTimeout(ctx, commandTimeout)
	defer stop()
	cmd := exec.CommandContext(ctx, f.program, append([]string{"-w", lockTimeout}, args...)...)
	out, err := boundedio.CombinedOutput(cmd, clip.Message)
	if err == nil {
		return nil
	}
	output := strings.Join(strings.Fields(string(out)), " ")
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		switch exit.ExitCode() {
		case 1:
			return fmt.Errorf("%s: %w (%s)", f.program, errRejected, output)
		case 4:
			return fmt.Errorf("%s: %w (%s)", f.program, errLocked, output)
		}
	}
	return fmt.Errorf("%s %s: %w (%s)", f.program, strings.Join(args, " "), err, output)
}

// works reports whether iptables of this family works on the node.
func (f *family) works(ctx context.Context) bool {
	return f.run(ctx, "-S", "POSTROUTING", "-t", "nat") == nil
}

// usesNftables reports whether the kernel has notifications for this iptables' tables.
func (f *family) usesNftables(ctx context.Context) bool {
	ctx, stop := context.WithTimeout(ctx, commandTimeout)
	defer stop()
	out, err := boundedio.Output(exec.CommandContext(ctx, f.program, "--version"), boundedio.Small)
	return err == nil && bytes.Contains(out, []byte("(nf_tables)"))
}
