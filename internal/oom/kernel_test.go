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

// hog makes this program one that takes all memory there is.
const hog = "SWIFTLET_TEST_HOG"

func TestMain(m *testing.M) {
	if os.Getenv(hog) != "" {
		// A machine that reads this program's pages over and over takes long to give up.
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

// In a group that comes to its limit, then on a machine that has no memory left: only the
// second is told. The kernel, its log and its killing are real.
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
	told := make(events, 100)
	w := newWatcher(t, t.TempDir(), string(boot), log, told)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()

	bounded := filepath.Join("/sys/fs/cgroup", t.Name())
	if err := os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+memory"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(bounded, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(bounded)
	if err := os.WriteFile(filepath.Join(bounded, "memory.max"), []byte("20000000"), 0); err != nil {
		t.Fatal(err)
	}
	killed(t, bounded)
	pid := killed(t, "/sys/fs/cgroup")
	select {
	case got := <-told:
		if want := fmt.Sprintf("node Warning SystemOOM System OOM encountered, victim process: exe, pid: %d", pid); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("the killing of %d is not told", pid)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(told) != 0 {
		t.Errorf("told besides: %s", <-told)
	}
}

// killed has a process of that group take memory until the kernel kills it.
func killed(t *testing.T, group string) (pid int) {
	t.Helper()
	dir, err := os.Open(group)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	// The shell marks itself as the first to go before there is anything else.
	cmd := exec.Command("sh", "-c", "echo 1000 > /proc/self/oom_score_adj; exec /proc/"+fmt.Sprint(os.Getpid())+"/exe")
	cmd.Env = append(os.Environ(), hog+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	err = cmd.Run()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("in %s the process ended with %v", group, err)
	}
	return cmd.ProcessState.Pid()
}
