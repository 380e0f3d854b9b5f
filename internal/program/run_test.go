package program

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swiftlet/test/hungfs"
	"swiftlet/test/poll"
)

func TestRun(t *testing.T) {
	out, err := Run(t.Context(), time.Minute, "sh", "-c", "echo out; echo err >&2; exit 3")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || string(out) != "out\nerr\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if out, err := Run(t.Context(), time.Minute, "echo", "x"); err != nil || string(out) != "x\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

// A program that takes too long is killed with its children.
func TestTimeoutKillsGroup(t *testing.T) {
	began := time.Now()
	_, err := Run(t.Context(), 100*time.Millisecond, "sh", "-c", "sleep 60 & sleep 60")
	var timeout *TimeoutError
	if !errors.As(err, &timeout) || timeout.Unkillable {
		t.Errorf("got %v, want a *TimeoutError of a killed program", err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("took %v: a child was not killed", took)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, time.Minute, "sleep", "60"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the error of the context", err)
	}
}

// A program in an uninterruptible system call cannot be killed. Run returns nevertheless.
func TestUnkillableProgram(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to mount")
	}
	dir := filepath.Join(t.TempDir(), "fs")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f := hungfs.Mount(t, dir)
	if out, err := exec.Command("stat", dir+"/sub").CombinedOutput(); err != nil {
		t.Fatalf("before it hangs: %v: %s", err, out)
	}
	f.Hang()
	done := make(chan error, 1)
	go func() {
		_, err := Run(t.Context(), 200*time.Millisecond, "stat", dir+"/other")
		done <- err
	}()
	select {
	case err := <-done:
		var timeout *TimeoutError
		if !errors.As(err, &timeout) {
			t.Errorf("got %v, want a *TimeoutError", err)
		}
		t.Log(err)
	case <-time.After(killWait + 10*time.Second):
		t.Error("Run waits for a program that cannot be killed")
	}
	f.Release()
	poll.Until(t, "the program to end", func() bool { return len(hanging.Running()) == 0 })
	if left := strings.Join(hanging.Running(), " "); left != "" {
		t.Errorf("left: %s", left)
	}
}

// A command that hangs is not repeated: a second run of it waits for the first. Another command does not.
func TestSameCommandRunsOnce(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "lock")
	script := "mkdir " + lock + " || exit 1; until [ -e " + lock + "/go ]; do sleep 0.01; done; rm -r " + lock
	results := make(chan error, 2)
	start := func() {
		_, err := Run(t.Context(), time.Minute, "sh", "-c", script)
		results <- err
	}
	go start()
	poll.Until(t, "the first to run", func() bool { _, err := os.Stat(lock); return err == nil })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, 50*time.Millisecond, "sh", "-c", script); err == nil || errors.As(err, new(*exec.ExitError)) {
		t.Errorf("the same command ran beside the first: %v", err)
	}
	if _, err := Run(t.Context(), time.Minute, "sh", "-c", "exit 0"); err != nil {
		t.Errorf("another command: %v", err)
	}
	if err := os.WriteFile(filepath.Join(lock, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-results; err != nil {
		t.Errorf("the first: %v", err)
	}
	if len(hanging.Running()) != 0 {
		t.Errorf("left: %q", hanging.Running())
	}
}
