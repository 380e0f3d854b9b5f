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

// triggers are PSI triggers, the preferred one first: tasks stalled on memory for 20 ms within
// half a second. At that point the kernel has begun to reclaim memory, long before it finds none
// left. A process without CAP_SYS_RESOURCE may only use windows that are multiples of two seconds.
var triggers = []string{"some 20000 500000", "some 20000 2000000"}

// openEventsInterval is how many milliseconds pass between two attempts to open the events of
// the pods' cgroup, which may not exist yet when the kubelet starts.
const openEventsInterval = 10_000

// pressureNotifier notifies, on cgroup v2, of memory stalls (PSI) and of events of the pods'
// cgroup, where they have one. Where the kernel does not support PSI, only the latter remain.
type pressureNotifier struct {
	pressure, events string // files; events may be empty
	log              *slog.Logger
	open             func(file, trigger string) (*os.File, error) // openTrigger outside of tests
}

// SetThresholds does nothing: cgroup v2 has no thresholds of memory usage.
func (n *pressureNotifier) SetThresholds([]MemoryThreshold) error { return nil }

// Run blocks a thread in poll, because the Go runtime's poller does not wait for POLLPRI.
func (n *pressureNotifier) Run(ctx context.Context, notify func()) error {
	stalls := n.openStalls()
	defer func() { stalls.Close() }()
	done, closeDone, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("create pipe: %w", err)
	}
	defer done.Close()
	defer context.AfterFunc(ctx, func() { closeDone.Close() })()

	var events *os.File
	defer func() { events.Close() }()
	for ctx.Err() == nil {
		if events == nil && n.events != "" {
			events = openEvents(n.events)
		}
		fds, timeout := []unix.PollFd{{Fd: int32(done.Fd()), Events: unix.POLLIN}}, -1
		for _, f := range []*os.File{stalls, events} {
			if f != nil {
				fds = append(fds, unix.PollFd{Fd: int32(f.Fd()), Events: unix.POLLPRI})
			}
		}
		if events == nil && n.events != "" {
			timeout = openEventsInterval
		}
		if ready, err := unix.Poll(fds, timeout); ready == 0 || errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return fmt.Errorf("poll memory pressure: %w", err)
		}
		if stalls != nil && fds[1].Revents&unix.POLLERR != 0 {
			n.log.Warn("memory pressure: trigger was removed, stalls are no longer reported", "path", n.pressure)
			stalls.Close()
			stalls = nil
			continue
		}
		if last := fds[len(fds)-1]; events != nil && last.Revents != 0 {
			events = readEvents(events)
		}
		if ctx.Err() == nil {
			notify()
		}
	}
	return nil
}

// openStalls opens the pressure file with a trigger; nil where that is not possible: the kernel
// may be built without PSI, and a kubelet in a container may have no access to the file.
func (n *pressureNotifier) openStalls() *os.File {
	var first error
	for _, trigger := range triggers {
		f, err := n.open(n.pressure, trigger)
		if err == nil {
			return f
		}
		first = cmp.Or(first, err)
		if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EINVAL) {
			break
		}
	}
	if !errors.Is(first, fs.ErrNotExist) && !errors.Is(first, unix.EOPNOTSUPP) {
		n.log.Warn("memory pressure: cannot set trigger, only events of the pods' cgroup are reported", "path", n.pressure, "err", first)
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

// openEvents opens memory.events of the pods' cgroup; nil where the cgroup does not exist.
func openEvents(file string) *os.File {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	return readEvents(f)
}

// readEvents reads the file, which resets POLLPRI until the next event. It returns nil where the
// cgroup was removed.
func readEvents(f *os.File) *os.File {
	if _, err := f.ReadAt(make([]byte, 512), 0); err != nil && !errors.Is(err, io.EOF) {
		f.Close()
		return nil
	}
	return f
}
