package standalone

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// What runs as root, and where it writes, must not be up to other users.
func TestDirectoriesOfOthersAreRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := checkOwner(dir); err != nil {
		t.Errorf("missing directory: %v", err)
	}
	if err := os.Mkdir(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[os.FileMode]bool{0o711: true, 0o755: true, 0o775: false, 0o757: false, 0o777 | os.ModeSticky: false} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := checkOwner(dir); (err == nil) != ok {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root to change the owner")
	}
	if err := os.Chown(dir, 1234, -1); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := checkOwner(dir); err == nil || !strings.Contains(err.Error(), "1234") {
		t.Errorf("directory of another user: %v", err)
	}
}

// The lock is opened before anything else is checked: a link in its place must not have another file overwritten.
func TestLockInDirectoryOfOthersIsNotOpened(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	run, victim := filepath.Join(dir, "r"), filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(run, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(run, "lock")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(run, 0o777); err != nil {
		t.Fatal(err)
	}
	s := &Supervisor{cfg: Config{Paths: Paths{root: filepath.Join(dir, "root"), run: run, bundle: dir}}}
	if lock, err := s.acquireLock(); err == nil {
		lock.Close()
		t.Error("the lock was taken")
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// sleeper is a clock whose sleepers do something else meanwhile.
type sleeper struct {
	*clocktesting.FakeClock
	meanwhile func()
}

func (s sleeper) Sleep(d time.Duration) {
	s.FakeClock.Sleep(d)
	s.meanwhile()
}

// A node that is started again right after it was killed finds the port of its predecessor's API server.
func TestPortsOfPredecessorAreAwaited(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cfg := Config{API: &APIConfig{Port: taken.Addr().(*net.TCPAddr).Port}}
	clock := sleeper{clocktesting.NewFakeClock(time.Now()), func() {}}
	began := clock.Now()
	if err := checkPorts(cfg, clock); err == nil || !strings.Contains(err.Error(), "--api-port") || clock.Since(began) != portPatience {
		t.Errorf("a port that stays taken: %v after %v", err, clock.Since(began))
	}
	clock.meanwhile = func() { taken.Close() }
	if err := checkPorts(cfg, clock); err != nil {
		t.Errorf("a port that is released: %v", err)
	}
}
