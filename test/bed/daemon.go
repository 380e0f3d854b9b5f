package bed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"swiftlet/test/pdeathsig"
)

// daemon is a program that runs until it is stopped. Its output goes to a log file.
type daemon struct {
	name  string
	log   string
	cmd   *exec.Cmd
	began time.Time
	// target returns the process to signal, which may be a child of the one started.
	target func() (int, error)
	done   chan struct{} // closed when the program has exited
	err    error         // its exit; valid once done is closed
}

// startDaemon starts cmd and appends its output to the log.
func startDaemon(name, log string, cmd *exec.Cmd) (*daemon, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true // Ctrl-C goes to the bed only, which stops programs in order
	exited, err := pdeathsig.Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	d := &daemon{name: name, log: log, cmd: cmd, began: time.Now(), done: make(chan struct{})}
	d.target = func() (int, error) { return cmd.Process.Pid, nil }
	go func() {
		d.err = <-exited
		close(d.done)
	}()
	return d, nil
}

func (d *daemon) running() bool {
	if d == nil {
		return false
	}
	select {
	case <-d.done:
		return false
	default:
		return true
	}
}

// signal does nothing if the program has exited.
func (d *daemon) signal(sig syscall.Signal) error {
	if !d.running() {
		return nil
	}
	pid, err := d.target()
	if err == nil {
		err = syscall.Kill(pid, sig)
	}
	if err != nil && d.running() && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %s: %w", d.name, err)
	}
	return nil
}

// stop sends SIGTERM and, after the grace period, SIGKILL. It returns when the program has
// exited.
func (d *daemon) stop(grace time.Duration) error {
	if !d.running() {
		return nil
	}
	if err := d.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-d.done:
		return nil
	case <-time.After(grace):
		return d.kill()
	}
}

func (d *daemon) kill() error {
	if !d.running() {
		return nil
	}
	if err := d.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-d.done
	return nil
}

// await polls check until it passes. When ctx is done or the program exits, it returns the last
// error with the end of the log.
func (d *daemon) await(ctx context.Context, check func(context.Context) error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-d.done:
			return fmt.Errorf("%s exited (%v) before it was ready: %w\n%s", d.name, d.err, err, tail(d.log, 20))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready (%w): %w\n%s", d.name, context.Cause(ctx), err, tail(d.log, 20))
		}
	}
}
