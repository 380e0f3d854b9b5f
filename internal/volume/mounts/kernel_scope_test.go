package mounts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"
)

// mountHelper stands for a mount helper that starts a daemon, as those of FUSE file systems do. It writes
// the daemon's PID to the source of the mount.
const mountHelper = "#!/bin/sh\nsetsid sleep 600 </dev/null >/dev/null 2>&1 &\necho $! > $1\n"

type mountFunc func(source, target, fileSystem string, options []string) error

// TestKernelScope mounts in a service of systemd, then stops the service: the daemon of the mount helper
// survives that in a scope of its own.
func TestKernelScope(t *testing.T) {
	mounters := map[string]struct {
		mount    func() mountFunc
		survives bool
	}{
		"agent":         {func() mountFunc { return NewTools().Mount }, true},
		"reference":     {func() mountFunc { return mount.New("").Mount }, true},
		"without-scope": {func() mountFunc { return mount.NewWithoutSystemd("").Mount }, false},
	}
	if name := os.Getenv("SWIFTLET_TEST_MOUNT_AS"); name != "" { // this is the service
		if err := mounters[name].mount()(os.Getenv("SWIFTLET_TEST_PID_FILE"), t.TempDir(), "swiftlettest", nil); err != nil {
			t.Fatal(err)
		}
		return
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		if os.Getenv("SWIFTLET_TEST_CGROUP_DRIVER") == "systemd" {
			t.Fatal("this machine is for tests with systemd, but systemd does not run it")
		}
		t.Skip("systemd does not run this machine")
	}
	if err := os.WriteFile("/sbin/mount.swiftlettest", []byte(mountHelper), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove("/sbin/mount.swiftlettest") })
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range mounters {
		t.Run(name, func(t *testing.T) {
			pidFile := filepath.Join(t.TempDir(), "pid")
			unit := "test-" + name + ".service"
			command(t, "systemd-run", "--unit="+unit, "--property=DefaultDependencies=no", "--property=Type=oneshot", "--property=RemainAfterExit=yes",
				"--setenv=PATH="+os.Getenv("PATH"), "--setenv=SWIFTLET_TEST_MOUNT_AS="+name, "--setenv=SWIFTLET_TEST_PID_FILE="+pidFile,
				program, "-test.run=^TestKernelScope$")
			pid, err := strconv.Atoi(strings.TrimSpace(readText(t, pidFile)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) })
			if group := readText(t, "/proc/"+strconv.Itoa(pid)+"/cgroup"); strings.Contains(group, ".scope") != c.survives {
				t.Errorf("the daemon is in cgroup %s", group)
			}
			command(t, "systemctl", "stop", unit) // it kills the processes that are left in the service
			if alive := unix.Kill(pid, 0) == nil; alive != c.survives {
				t.Errorf("the daemon is alive: %v, want %v", alive, c.survives)
			}
		})
	}
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}
