package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// trigger: tasks have waited for memory for 20 ms of half a second. That is when the kernel
// has begun to look for memory, long before it finds none.
const trigger = "some 20000 500000"

// untilGroup is how many milliseconds pass between two tries to find the pods' group, which
// nobody has made yet when the agent starts.
const untilGroup = 10_000

// pressureAlarm rings by v2's means: stalls of tasks, and events of the pods' group, where
// there is one.
type pressureAlarm struct{ pressure, events string }

// Set has nothing to do: the kernel knows of no marks.
func (a *pressureAlarm) Set([]Mark) error { return nil }

// Run waits in a thread of its own, because Go's own poller does not know this kind of
// event.
func (a *pressureAlarm) Run(ctx context.Context, ring func()) error {
	stalls, err := openTrigger(a.pressure)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("watch for stalls: %w", err)
	}
	defer stalls.Close() // nil where the kernel does not count stalls; events are left then
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
			return errors.New("watch for stalls: the kernel gave up")
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

func openTrigger(file string) (*os.File, error) {
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
