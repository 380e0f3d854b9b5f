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

// kill ends every process in the given groups and those below them, and returns when
// none is left. Processes that fork while being killed are caught by going round again.
func kill(ctx context.Context, dirs []string) error {
	for {
		pids, err := processes(dirs)
		if err != nil {
			return fmt.Errorf("list leftover processes: %w", err)
		}
		if len(pids) == 0 {
			return nil
		}
		if err := killAll(ctx, dirs, pids); err != nil {
			return fmt.Errorf("kill %d leftover processes: %w", len(pids), err)
		}
	}
}

// killAll signals the processes and waits until all of them have exited.
func killAll(ctx context.Context, dirs []string, pids []int) error {
	handles := map[int]int{} // by pid
	defer func() {
		for _, handle := range handles {
			unix.Close(handle)
		}
	}()
	for _, pid := range pids {
		handle, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return os.NewSyscallError("pidfd_open", err)
		}
		handles[pid] = handle
	}
	// A pid may have passed to an innocent process between the listing and the opening.
	// One that is listed now is held by its handle, which never passes to another.
	still, err := processes(dirs)
	if err != nil {
		return err
	}
	var dying []unix.PollFd
	for _, pid := range still {
		handle, ok := handles[pid]
		if !ok {
			continue
		}
		if err := unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return os.NewSyscallError("pidfd_send_signal", err)
		}
		dying = append(dying, unix.PollFd{Fd: int32(handle), Events: unix.POLLIN})
	}
	thaw(dirs)
	return awaitExit(ctx, dying)
}

// awaitExit returns when every handle's process has exited, or with ctx's error.
func awaitExit(ctx context.Context, waiting []unix.PollFd) error {
	for len(waiting) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// poll knows nothing of ctx; this bounds how late its end is noticed.
		if _, err := unix.Poll(waiting, int((100 * time.Millisecond).Milliseconds())); err != nil && !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("poll", err)
		}
		waiting = slices.DeleteFunc(waiting, func(h unix.PollFd) bool { return h.Revents != 0 })
	}
	return nil
}

// processes lists what lives in the groups and those below them, each once.
func processes(dirs []string) ([]int, error) {
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

// thaw lets frozen processes run, for on v1 they cannot die before. A failure shows as
// processes that stay.
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
