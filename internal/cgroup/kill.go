package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
)

// killProcesses kills every process in the given cgroups and those below them, and returns when
// all have exited. It repeats that until it finds none, for those that forked meanwhile.
func killProcesses(ctx context.Context, dirs []string) error {
	for {
		pids, err := listProcesses(dirs)
		if err != nil {
			return fmt.Errorf("list leftover processes: %w", err)
		}
		if len(pids) == 0 {
			return nil
		}
		if err := killAndWait(ctx, dirs, pids); err != nil {
			return fmt.Errorf("kill %d leftover processes: %w", len(pids), err)
		}
	}
}

// killAndWait sends SIGKILL to the processes and waits until they have exited.
func killAndWait(ctx context.Context, dirs []string, pids []int) error {
	pidfds := map[int]int{} // by PID
	defer func() {
		for _, pidfd := range pidfds {
			unix.Close(pidfd)
		}
	}()
	for _, pid := range pids {
		pidfd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return os.NewSyscallError("pidfd_open", err)
		}
		pidfds[pid] = pidfd
	}
	// The kernel may have reused a PID between the listing and the opening. A PID that is listed
	// again belongs to the process of its pidfd, which cannot be reused.
	remaining, err := listProcesses(dirs)
	if err != nil {
		return err
	}
	var killed []unix.PollFd
	for _, pid := range remaining {
		pidfd, ok := pidfds[pid]
		if !ok {
			continue
		}
		if err := unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return os.NewSyscallError("pidfd_send_signal", err)
		}
		killed = append(killed, unix.PollFd{Fd: int32(pidfd), Events: unix.POLLIN})
	}
	thaw(dirs)
	return waitForExit(ctx, killed)
}

// waitForExit returns when the process of every pidfd has exited, or with the cause of ctx.
func waitForExit(ctx context.Context, pidfds []unix.PollFd) error {
	for len(pidfds) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// poll cannot wait for ctx, so it returns regularly.
		if _, err := unix.Poll(pidfds, int((100 * time.Millisecond).Milliseconds())); err != nil && !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("poll", err)
		}
		pidfds = slices.DeleteFunc(pidfds, func(fd unix.PollFd) bool { return fd.Revents != 0 })
	}
	return nil
}

// listProcesses returns the processes in the cgroups and those below them, each once.
func listProcesses(dirs []string) ([]int, error) {
	found := map[int]bool{}
	for _, dir := range dirs {
		pids, err := cgroups.GetAllPids(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
			return nil, err
		}
		for _, pid := range pids {
			found[pid] = true
		}
	}
	return slices.Collect(maps.Keys(found)), nil
}

// thaw thaws frozen processes: on v1 they do not handle SIGKILL before. It ignores failures,
// because the caller then times out waiting for the processes.
func thaw(dirs []string) {
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Name() == "freezer.state" {
				_ = os.WriteFile(path, []byte("THAWED"), 0)
			}
			if err == nil && e.Name() == "cgroup.freeze" {
				_ = os.WriteFile(path, []byte("0"), 0)
			}
			return nil
		})
	}
}
