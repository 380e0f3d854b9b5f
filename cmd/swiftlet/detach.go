package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"swiftlet/internal/standalone"
)

// detachedEnv is set for the process in the background.
const detachedEnv = "SWIFTLET_DETACHED"

// detach runs `swiftlet up` in the background, shows its output until it has started, and returns.
func detach(ctx context.Context, f upFlags, out io.Writer) error {
	cfg, err := f.config()
	if err != nil {
		return err
	}
	failures, err := standalone.OpenErrorLog(cfg.Paths)
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	defer failures.Close()
	before, err := failures.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	command := exec.Command(self, os.Args[1:]...)
	command.Env = append(os.Environ(), detachedEnv+"=1")
	command.Stderr = failures
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	progress, err := command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = command.Process.Signal(syscall.SIGTERM) })
	defer stop()
	for lines := bufio.NewScanner(progress); lines.Scan(); {
		if lines.Text() == standalone.StartedLine {
			fmt.Fprintln(out, "swiftlet: started in the background; stop it with `swiftlet down`")
			return nil
		}
		fmt.Fprintln(out, lines.Text())
	}
	_ = command.Wait() // what it has written says why
	reason, err := io.ReadAll(io.NewSectionReader(failures, before, 64<<10))
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	return errors.New(strings.TrimSpace(string(reason)))
}

// isDetached reports whether this process is the one in the background. Its children are not.
func isDetached() bool {
	detached := os.Getenv(detachedEnv) != ""
	_ = os.Unsetenv(detachedEnv)
	return detached
}
