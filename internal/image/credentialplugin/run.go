package credentialplugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// maxStdout and maxStderr limit how much of a plugin's output is read.
	maxStdout = 1 << 20
	maxStderr = 4 << 10
	// outputDelay is how long run waits for the output after the plugin exited: a child of it
	// may keep the pipe open.
	outputDelay = time.Second
)

// run passes a request to the plugin and returns its output. It kills the plugin's process
// group on timeout and when ctx ends.
func (p *plugin) run(ctx context.Context, request []byte) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	stdout := &limitedBuffer{limit: maxStdout, onExceeded: cancel}
	stderr := &limitedBuffer{limit: maxStderr}

	cmd := exec.CommandContext(limited, p.program, p.Args...)
	cmd.Env = os.Environ() // of duplicate names, the last counts
	for _, e := range p.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(request), stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
			return err
		}
		return os.ErrProcessDone
	}
	cmd.WaitDelay = outputDelay

	began := p.deps.Clock.Now()
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err() // canceled: no failure of the plugin
	}
	p.deps.Meters.Ran.Took(p.Name, p.deps.Clock.Since(began))
	switch {
	case stdout.exceeded:
		err = fmt.Errorf("output exceeds %d bytes", maxStdout)
	case err != nil && limited.Err() != nil:
		err = fmt.Errorf("timed out after %v and was killed", p.timeout)
	case errors.Is(err, exec.ErrWaitDelay): // exited with status 0
		err = nil
	}
	if err == nil {
		return stdout.buffer.Bytes(), nil
	}
	p.deps.Meters.Failed.Inc(p.Name)
	if text := strings.TrimSpace(stderr.buffer.String()); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return nil, err
}

// limitedBuffer stores the first limit bytes that are written to it.
type limitedBuffer struct {
	buffer     bytes.Buffer
	limit      int
	exceeded   bool
	onExceeded func() // may be nil
}

// Write discards what exceeds the limit, so that the program does not block on a full pipe.
func (b *limitedBuffer) Write(data []byte) (int, error) {
	if room := b.limit - b.buffer.Len(); len(data) > room {
		b.buffer.Write(data[:room])
		b.exceeded = true
		if b.onExceeded != nil {
			b.onExceeded()
		}
		return len(data), nil
	}
	return b.buffer.Write(data)
}
