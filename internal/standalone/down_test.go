package standalone

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// victim is a process that no lock file may name to have it stopped.
func victim(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func running(cmd *exec.Cmd) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// TestDownStopsNoOtherProcess: a lock that is held need not have the PID of its holder: an instance that starts
// has not written it yet, and others may write to a directory of theirs.
func TestDownStopsNoOtherProcess(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for name, mode := range map[string]os.FileMode{"stale PID": 0o711, "directory of others": 0o777} {
		t.Run(name, func(t *testing.T) {
			other, dir := victim(t), t.TempDir()
			p := Paths{root: filepath.Join(dir, "root"), run: filepath.Join(dir, "run"), bundle: dir}
			if err := os.Mkdir(p.run, 0o711); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(p.run, mode); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p.lock(), fmt.Appendln(nil, other.Process.Pid), 0o600); err != nil {
				t.Fatal(err)
			}
			held, err := os.Open(p.lock())
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			err = Down(ctx, Config{Paths: p}, Deps{Log: slog.New(slog.DiscardHandler), Out: io.Discard})
			if err == nil || !running(other) {
				t.Errorf("got %v, the process runs: %v", err, running(other))
			}
		})
	}
}

// TestLogsInDirectoryOfOthersAreNotOpened: they could have any file of root written to.
func TestLogsInDirectoryOfOthersAreNotOpened(t *testing.T) {
	dir := t.TempDir()
	p := Paths{root: filepath.Join(dir, "root"), run: dir, bundle: dir}
	open := map[string]func() (io.Closer, error){
		"agent log": func() (io.Closer, error) { return OpenAgentLog(p) },
		"error log": func() (io.Closer, error) { return OpenErrorLog(p) },
	}
	for mode, allowed := range map[os.FileMode]bool{0o711: true, 0o777: false} {
		if err := os.MkdirAll(p.root, 0o711); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p.root, mode); err != nil {
			t.Fatal(err)
		}
		for name, f := range open {
			log, err := f()
			if (err == nil) != allowed {
				t.Errorf("%s, mode %v: %v", name, mode, err)
			}
			if err == nil {
				log.Close()
			}
		}
	}
}
