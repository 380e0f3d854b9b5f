package trust

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"swiftlet/test/trust/tally"
)

// Run runs the commands of a class in the directory root and returns their counts, added up. All
// output goes to log. A class that injects nothing fails: its tests were not found or were skipped.
func Run(ctx context.Context, root string, class Class, log io.Writer) Result {
	ctx, cancel := context.WithTimeoutCause(ctx, Limit, fmt.Errorf("did not end within %v", Limit))
	defer cancel()
	began := time.Now()
	result := Result{Counts: tally.Counts{Class: class.Name}, Time: began.UTC().Format(time.RFC3339)}
	var failures []error
	for _, command := range class.Commands {
		counts := &counter{class: class.Name}
		err := execute(ctx, root, command, io.MultiWriter(log, counts))
		result.Counts = add(result.Counts, counts.sum)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", strings.Join(command.Args, " "), err))
		}
	}
	result.Seconds = int(time.Since(began).Seconds())
	if result.Faults == 0 {
		failures = append(failures, errors.New("no fault was injected"))
	}
	if err := errors.Join(failures...); err != nil {
		result.Failure = err.Error()
	}
	return result
}

// execute runs a command in a process group of its own, so that the end of ctx stops its children too.
func execute(ctx context.Context, root string, command Command, out io.Writer) error {
	cmd := exec.CommandContext(ctx, command.Args[0], command.Args[1:]...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), command.Env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Tests close their cluster on SIGTERM.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	err := cmd.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// counter adds up the lines of package tally in the output that is written to it.
type counter struct {
	class string
	sum   tally.Counts
	line  []byte
}

// maxLine is the length at which a line without an end is dropped. Lines of package tally are short.
const maxLine = 64 << 10

// Write looks for lines of package tally. It returns no error.
func (c *counter) Write(p []byte) (int, error) {
	written := len(p)
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			break
		}
		c.count(append(c.line, p[:end]...))
		c.line, p = c.line[:0], p[end+1:]
	}
	if len(c.line)+len(p) <= maxLine {
		c.line = append(c.line, p...)
	}
	return written, nil
}

// count reads a line. Output of parallel tests may precede the counts in the same line.
func (c *counter) count(line []byte) {
	_, text, found := bytes.Cut(line, []byte(tally.Prefix))
	if !found {
		return
	}
	var counts tally.Counts
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&counts); err != nil || counts.Class != c.class {
		return
	}
	c.sum = add(c.sum, counts)
}

func add(a, b tally.Counts) tally.Counts {
	a.Faults += b.Faults
	a.Survived += b.Survived
	a.PodsLost += b.PodsLost
	a.Restarts += b.Restarts
	a.Leaks += b.Leaks
	return a
}
