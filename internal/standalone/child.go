package standalone

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/backoff"
)

const (
	// stableAfter is how long a program must run for its restart back-off to be reset.
	stableAfter     = time.Minute
	minRestartDelay = 100 * time.Millisecond
	maxRestartDelay = 10 * time.Second
)

// child is a program that is restarted whenever it exits. Pods keep running without it.
type child struct {
	name    string
	command []string
	logFile string
	stdout  *os.File   // nil for the log
	files   []*os.File // more that the program inherits, from 3 on
	// system has attributes beside a session of its own.
	system syscall.SysProcAttr
	exited func() // is called when the program has exited; may be nil
	log    *slog.Logger
	clock  clock.Clock

	current *process // nil while the program does not run
}

// start runs the program in its own session, so that a Ctrl-C on the terminal does not reach it.
func (c *child) start() error {
	output, err := openAppend(c.logFile)
	if err != nil {
		return err
	}
	defer output.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	defer null.Close()
	stdout := c.stdout
	if stdout == nil {
		stdout = output
	}
	system := c.system
	system.Setsid = true
	started, err := os.StartProcess(c.command[0], c.command, &os.ProcAttr{
		Dir: "/", Env: runtimeEnv(os.Environ()), Files: append([]*os.File{null, stdout, output}, c.files...), Sys: &system,
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	if c.current, err = openProcess(started.Pid); err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	_ = started.Release() // c.current waits for the process through its pidfd
	c.log.Info(c.name+": started", "pid", c.current.pid)
	return nil
}

// run starts the program unless it runs, and restarts it whenever it exits, until ctx is done. It does not
// stop the program.
func (c *child) run(ctx context.Context) error {
	restart, since := backoff.Backoff{First: minRestartDelay, Longest: maxRestartDelay}, c.clock.Now()
	for {
		if c.current == nil {
			since = c.clock.Now()
			if err := c.start(); err != nil {
				pause := restart.Next()
				c.log.Error(c.name+": start failed", "err", err, "delay", pause)
				if err := c.sleep(ctx, pause); err != nil {
					return err
				}
				continue
			}
		}
		if err := c.current.wait(ctx); err != nil {
			return err
		}
		c.current.close()
		c.current = nil
		if c.exited != nil {
			c.exited()
		}
		up := c.clock.Since(since)
		if up >= stableAfter {
			restart.Reset()
		}
		pause := restart.Next()
		c.log.Warn(c.name+": exited, restarting, pods keep running", "uptime", up.Round(time.Millisecond), "delay", pause, "log", c.logFile)
		if err := c.sleep(ctx, pause); err != nil {
			return err
		}
	}
}

func (c *child) sleep(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.clock.After(pause):
		return nil
	}
}

// stop ends the program if it runs.
func (c *child) stop(grace time.Duration) error {
	if c.current == nil {
		return nil
	}
	defer c.release()
	return c.current.stop(context.Background(), grace)
}

// release forgets the program and leaves it running.
func (c *child) release() {
	if c.current != nil {
		c.current.close()
		c.current = nil
	}
}
