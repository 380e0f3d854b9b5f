package oom

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hog makes this program allocate all memory.
const hog = "SWIFTLET_TEST_HOG"

func TestMain(m *testing.M) {
	if os.Getenv(hog) != "" {
		// Without the lock, the kernel would evict and read back this program's pages for long.
		if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE); err != nil {
			panic(err)
		}
		for held := [][]byte{}; ; {
			piece := make([]byte, 1<<20)
			for i := 0; i < len(piece); i += 4096 {
				piece[i] = 1
			}
			held = append(held, piece)
		}
	}
	os.Exit(m.Run())
}

// First a cgroup reaches its limit, then the machine is out of memory: only the second is
// reported. The kernel, its log and the OOM killer are real.
func TestKernelOOM(t *testing.T) {
	if text, err := os.ReadFile("/proc/cpuinfo"); err != nil || !strings.Contains(string(text), "User Mode Linux") {
		t.Skip("takes all of a machine's memory: go test -exec 'bin/uml -memory 256' -run Kernel")
	}
	log, err := os.Open("/dev/kmsg")
	if err != nil {
		t.Fatal(err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	reported := make(events, 100)
	w := newWatcher(t, t.TempDir(), string(boot), log, reported)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()

	limited := filepath.Join("/sys/fs/cgroup", t.Name())
	if err := os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+memory"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(limited, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(limited)
	if err := os.WriteFile(filepath.Join(limited, "memory.max"), []byte("20000000"), 0); err != nil {
		t.Fatal(err)
	}
	runUntilKilled(t, limited)
	pid := runUntilKilled(t, "/sys/fs/cgroup")
	select {
	case got := <-reported:
		if want := fmt.Sprintf("node Warning SystemOOM System OOM encountered, victim process: exe, pid: %d", pid); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("the kill of %d is not reported", pid)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(reported) != 0 {
		t.Errorf("unexpected event: %s", <-reported)
	}
}

// runUntilKilled runs a process in that cgroup that allocates memory until it is killed.
func runUntilKilled(t *testing.T, cgroup string) (pid int) {
	t.Helper()
	dir, err := os.Open(cgroup)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	// The shell makes itself the first victim before it allocates anything.
	cmd := exec.Command("sh", "-c", "echo 1000 > /proc/self/oom_score_adj; exec /proc/"+fmt.Sprint(os.Getpid())+"/exe")
	cmd.Env = append(os.Environ(), hog+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	err = cmd.Run()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("process in %s ended with %v, want SIGKILL", cgroup, err)
	}
	return cmd.ProcessState.Pid()
}
