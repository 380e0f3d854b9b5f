// Package streaming runs commands in containers, attaches to them and forwards ports.
package streaming

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"swiftlet/cri-docker/internal/engine"
	"swiftlet/cri-docker/internal/host"
)

const (
	// exitPatience bounds the time between the end of a command's output and Docker's record of its exit.
	exitPatience = 10 * time.Second
	// maxOutput bounds each stream of ExecSync: it is held in memory and sent in one message.
	maxOutput = 16 << 20
)

// Streams are the ends of a command's streams on the side of the client. Any may be nil.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	TTY      bool
	Resize   <-chan remotecommand.TerminalSize
}

// Commands runs commands in containers.
type Commands struct {
	Engine *engine.Engine
	Log    *slog.Logger
}

// Run runs a command until it exits, and returns its exit code. If ctx ends, the command is killed.
func (c *Commands) Run(ctx context.Context, container string, command []string, s Streams) (int, error) {
	id, err := c.Engine.Exec(ctx, container, client.ExecCreateOptions{
		Cmd: command, TTY: s.TTY, AttachStdin: s.In != nil, AttachStdout: s.Out != nil, AttachStderr: s.Err != nil})
	if err != nil {
		return 0, err
	}
	conn, err := c.Engine.StartExec(ctx, id, s.TTY)
	if err != nil {
		return 0, err
	}
	stopResize := resize(ctx, s.Resize, func(ctx context.Context, height, width uint) error {
		return c.Engine.ResizeExec(ctx, id, height, width)
	})
	defer stopResize()
	if err := copyStreams(ctx, conn, s); err != nil {
		c.kill(context.WithoutCancel(ctx), id)
		return 0, fmt.Errorf("exec in container %s: %w", container, err)
	}
	return c.exitCode(ctx, id)
}

// exitCode waits until Docker has recorded the exit, which follows the end of the output.
func (c *Commands) exitCode(ctx context.Context, id string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, exitPatience)
	defer cancel()
	for delay := time.Millisecond; ; delay = min(2*delay, 200*time.Millisecond) {
		state, err := c.Engine.InspectExec(ctx, id)
		if err != nil {
			return 0, err
		}
		if !state.Running {
			return state.ExitCode, nil
		}
		select {
		case <-ctx.Done(): // it has closed its output and runs on
			c.kill(context.WithoutCancel(ctx), id)
			return 0, fmt.Errorf("wait for exec %s: %w", id, ctx.Err())
		case <-time.After(delay):
		}
	}
}

// kill kills a command whose client is gone. Docker has no call for it.
func (c *Commands) kill(ctx context.Context, id string) {
	state, err := c.Engine.InspectExec(ctx, id)
	if err == nil && state.Running && state.PID > 0 {
		err = host.KillTree(state.PID, func() bool {
			now, err := c.Engine.InspectExec(ctx, id)
			return err == nil && now.Running && now.PID == state.PID
		})
	}
	if err != nil && !engine.NotFound(err) {
		c.Log.Warn("failed to kill a command", "exec", id, "err", err)
	}
}

// RunSync runs a command with a deadline (none, if it is zero) and returns its output. What is beyond the
// limit is dropped.
func (c *Commands) RunSync(ctx context.Context, container string, command []string, limit time.Duration) (stdout, stderr []byte, code int, err error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	out, errs := &bounded{limit: maxOutput}, &bounded{limit: maxOutput}
	code, err = c.Run(ctx, container, command, Streams{Out: out, Err: errs})
	if limit > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, nil, 0, fmt.Errorf("command timed out after %s: %w", limit, context.DeadlineExceeded)
	}
	return out.Bytes(), errs.Bytes(), code, err
}

// bounded keeps the beginning of what is written.
type bounded struct {
	bytes.Buffer
	limit int
}

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), b.limit-b.Len())])
	return len(p), nil
}

// copyStreams copies until the output ends. It closes the connection.
func copyStreams(ctx context.Context, conn client.HijackedResponse, s Streams) error {
	stop := context.AfterFunc(ctx, conn.Close)
	defer stop()
	defer conn.Close()
	if s.In != nil {
		go func() {
			// It ends when the connection closes, or with the client, which the server closes after this.
			_, _ = io.Copy(conn.Conn, s.In)
			_ = conn.CloseWrite() // the command sees the end of its input
		}()
	}
	out, errs := orDiscard(s.Out), orDiscard(s.Err)
	var err error
	if s.TTY {
		_, err = io.Copy(out, conn.Reader)
	} else {
		_, err = stdcopy.StdCopy(out, errs, conn.Reader)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// resize passes sizes of the client's terminal on. stop waits for its goroutine.
func resize(ctx context.Context, sizes <-chan remotecommand.TerminalSize, set func(ctx context.Context, height, width uint) error) (stop func()) {
	if sizes == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case size, ok := <-sizes:
				if !ok {
					return
				}
				_ = set(ctx, uint(size.Height), uint(size.Width)) // the command may have exited
			}
		}
	})
	return func() { cancel(); group.Wait() }
}

// exitError makes a code other than zero an error that the streaming protocol has a form for.
func exitError(code int) error {
	if code == 0 {
		return nil
	}
	return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", code), Code: code}
}
