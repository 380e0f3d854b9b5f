package standalone

import (
	"context"
	"fmt"
	"strings"
	"time"

	"swiftlet/internal/boundedio"
	"swiftlet/internal/clip"
	"swiftlet/internal/program"
)

const (
	// hostTimeout limits the programs that change the host: nft and iptables, which wait 5 s for a lock, and modprobe.
	hostTimeout = 30 * time.Second
	// listTimeout limits ctr when it reads, importTimeout when it writes images to disk.
	listTimeout, importTimeout = time.Minute, 10 * time.Minute
)

// runHostProgram runs a program that changes the host, until ctx is done.
func runHostProgram(ctx context.Context, name string, args ...string) error {
	return runWithInput(ctx, "", name, args...)
}

func runWithInput(ctx context.Context, input, name string, args ...string) error {
	out, err := program.RunWithInput(ctx, hostTimeout, input, name, args...)
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(append([]string{name}, args...), " "), err, strings.TrimSpace(clip.Text(string(out), clip.Message)))
	}
	return nil
}

// readHostProgram returns what a program prints.
func readHostProgram(ctx context.Context, name string, args ...string) (string, error) {
	out, err := program.Output(ctx, hostTimeout, boundedio.Document, name, args...)
	return string(out), err
}
