package cgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"
)

// triggers: tasks have waited for memory for 20 ms of half a second. That is when the kernel
// has begun to look for memory, long before it finds none. Those without CAP_SYS_RESOURCE may
// ask for nothing shorter than two seconds, and nothing between.
var triggers = []string{"some 20000 500000", "some 20000 2000000"}

// untilGroup is how many milliseconds pass between two tries to find the pods' group, which
// nobody has made yet when the agent starts.
const untilGroup = 10_000

// pressureAlarm rings by v2's means: stalls of tasks, and events of the pods' group, where
// there is one. The latter are left where the kernel does not tell of the former.
type pressureAlarm struct {
	pressure, events string
	log              *slog.Logger
	open             func(file, trigger string) (*os.File, error) // openTrigger, but for tests
}

// Set has nothing to do: the kernel knows of no marks.
func (a *pressureAlarm) Set([]Mark) error { return nil }

// Run waits in a thread of its own, because Go's own poller does not know this kind of
// event.
func (a *pressureAlarm) Run(ctx context.Context, ring func()) error {
	stalls := a.openStalls()
	defer func() { stalls.Close() }()
	end, closeEnd, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	defer end.Close()
	defer context.AfterFunc(ctx, func() { closeEnd.Close() })()

	var events *os.File
	defer func() { events.Close() }()
	for ctx.Err() == nil {
		if events == nil && a.events != "" {
			events = openEvents(a.events)
		}
		fds, timeout := []unix.PollFd{{Fd: int32(end.Fd()), Events: unix.POLLIN}}, -1
		for _, f := range []*os.File{stalls, events} {
			if f != nil {
				fds = append(fds, unix.PollFd{Fd: int32(f.Fd()), Events: unix.POLLPRI})
			}
		}
		if events == nil && a.events != "" {
			timeout = untilGroup
		}
		if n, err := unix.Poll(fds, timeout); n == 0 || errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return fmt.Errorf("wait for the kernel: %w", err)
		}
		if stalls != nil && fds[1].Revents&unix.POLLERR != 0 {
			a.log.Warn("the kernel tells no more when tasks wait for memory")
			stalls.Close()
			stalls = nil
			continue
		}
		if last := fds[len(fds)-1]; events != nil && last.Revents != 0 {
			events = reread(events)
		}
		if ctx.Err() == nil {
			ring()
		}
	}
	return nil
}

// openStalls has the kernel tell of stalls, nil where it does not: it may not count them, and
// the file may be out of bounds for an agent in a container.
func (a *pressureAlarm) openStalls() *os.File {
	var first error
	for _, trigger := range triggers {
		f, err := a.open(a.pressure, trigger)
		if err == nil {
			return f
		}
		first = cmp.Or(first, err)
		if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EINVAL) {
			break
		}
	}
	if !errors.Is(first, fs.ErrNotExist) && !errors.Is(first, unix.EOPNOTSUPP) {
		a.log.Warn("the kernel does not tell when tasks wait for memory, only when pods come to their limit", "err", first)
	}
	return nil
}

func openTrigger(file, trigger string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteString(trigger + "\x00"); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openEvents opens the pods' events, nil where there is no such group yet.
func openEvents(file string) *os.File {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	return reread(f)
}

// reread reads the file, by which the kernel knows what is news; nil where the group is gone.
func reread(f *os.File) *os.File {
	if _, err := f.ReadAt(make([]byte, 512), 0); err != nil && !errors.Is(err, io.EOF) {
		f.Close()
		return nil
	}
	return f
}
