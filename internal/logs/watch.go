package logs

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"swiftlet/internal/notify"
)

// watcher tells followers that files change. All share one inotify instance, because the
// kernel grants a user few of them (128) but many watches. That a writer closed a file
// matters here, and is the reason to speak to the kernel directly.
type watcher struct {
	opened chan struct{} // closed when there is an instance

	mu      sync.Mutex
	inotify *os.File // nil until somebody follows a log
	watches map[int32]map[*watch]bool
}

// watch is one follower's interest in one file or folder.
type watch struct {
	watcher *watcher
	id      int32
	wake    notify.Signal
}

func newWatcher() *watcher {
	return &watcher{opened: make(chan struct{}), watches: map[int32]map[*watch]bool{}}
}

const (
	interests = unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_CREATE | unix.IN_MOVED_TO
	eventSize = unix.SizeofInotifyEvent
)

// add has wake notified after each change of what f is. The
// file itself is watched, whatever its name comes to mean.
func (w *watcher) add(f *os.File, wake notify.Signal) (*watch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.open(); err != nil {
		return nil, fmt.Errorf("watch log: %w", err)
	}
	var id int
	err := control(w.inotify, func(inotify int) error {
		return control(f, func(fd int) (err error) {
			id, err = unix.InotifyAddWatch(inotify, fmt.Sprintf("/proc/self/fd/%d", fd), interests)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("watch log: %w", err)
	}
	added := &watch{watcher: w, id: int32(id), wake: wake}
	if w.watches[added.id] == nil {
		w.watches[added.id] = map[*watch]bool{}
	}
	w.watches[added.id][added] = true
	return added, nil
}

// open makes the instance; the caller holds mu.
func (w *watcher) open() error {
	if w.inotify != nil {
		return nil
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return err
	}
	w.inotify = os.NewFile(uintptr(fd), "inotify")
	close(w.opened)
	return nil
}

// stop ends a watch; nil is one that never was.
func (a *watch) stop() {
	if a == nil {
		return
	}
	w := a.watcher
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.watches[a.id], a); len(w.watches[a.id]) > 0 {
		return
	}
	delete(w.watches, a.id)
	_ = control(w.inotify, func(inotify int) error {
		_, err := unix.InotifyRmWatch(inotify, uint32(a.id)) // fails where the file is gone
		return err
	})
}

// run passes events on until ctx is done.
func (w *watcher) run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-w.opened:
	}
	stop := context.AfterFunc(ctx, func() { w.inotify.Close() })
	defer stop()
	buf := make([]byte, 64<<10)
	for {
		n, err := w.inotify.Read(buf)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watch logs: %w", err)
		}
		w.dispatch(buf[:n])
	}
}

// dispatch wakes those that the events concern. A lost event concerns all.
func (w *watcher) dispatch(events []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(events) >= eventSize {
		id := int32(binary.NativeEndian.Uint32(events))
		mask := binary.NativeEndian.Uint32(events[4:])
		events = events[min(len(events), eventSize+int(binary.NativeEndian.Uint32(events[12:]))):]
		if mask&unix.IN_Q_OVERFLOW == 0 {
			wakeAll(w.watches[id])
			continue
		}
		for _, watches := range w.watches {
			wakeAll(watches)
		}
	}
}

func wakeAll(watches map[*watch]bool) {
	for a := range watches {
		a.wake.Notify()
	}
}

// abandoned reports whether it is certain that nobody can write to the file. The kernel
// grants a lease for reading only then; where it grants none at all nothing is certain. It
// is given back at once: who wants to write again waits no longer than that.
func abandoned(f *os.File) bool {
	free := false
	_ = control(f, func(fd int) error {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
			return err
		}
		free = true
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
		return err
	})
	return free
}

// control lends out a file's descriptor.
func control(f *os.File, use func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := conn.Control(func(fd uintptr) { inner = use(int(fd)) }); err != nil {
		return err
	}
	return inner
}
