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

// watcher wakes followers when their files change. All share one inotify instance, because the
// kernel allows a user few instances (128) but many watches. It uses inotify directly because it
// needs IN_CLOSE_WRITE.
type watcher struct {
	opened chan struct{} // closed when the instance is open

	mu      sync.Mutex
	inotify *os.File // nil until a log is followed
	watches map[int32]map[*watch]bool
}

// watch is one follower's watch of a file or directory.
type watch struct {
	watcher *watcher
	id      int32
	wake    notify.Signal
}

func newWatcher() *watcher {
	return &watcher{opened: make(chan struct{}), watches: map[int32]map[*watch]bool{}}
}

const (
	watchMask = unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_CREATE | unix.IN_MOVED_TO
	eventSize = unix.SizeofInotifyEvent
)

// add notifies wake after each change of f. It watches the file itself, even if it is renamed.
func (w *watcher) add(f *os.File, wake notify.Signal) (*watch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.open(); err != nil {
		return nil, fmt.Errorf("watch log: %w", err)
	}
	var id int
	err := control(w.inotify, func(inotify int) error {
		return control(f, func(fd int) (err error) {
			id, err = unix.InotifyAddWatch(inotify, fmt.Sprintf("/proc/self/fd/%d", fd), watchMask)
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

// open opens the inotify instance. The caller holds mu.
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

// stop removes a watch. It does nothing on nil.
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
		_, err := unix.InotifyRmWatch(inotify, uint32(a.id)) // fails if the file is gone
		return err
	})
}

// run dispatches events until ctx is done.
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

// dispatch wakes the followers of the changed files, and all of them after lost events.
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

// hasNoWriter reports whether no process has the file open for writing: only then does the
// kernel grant a read lease. False may also mean that the file system has no leases. It releases
// the lease at once; a new writer waits only for that.
func hasNoWriter(f *os.File) bool {
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

// control calls use with the file's descriptor.
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
