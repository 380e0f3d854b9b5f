package logs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// growthWatcher reports the first write to a log after watch, and no further ones: a busy log
// must not cause an event per line.
type growthWatcher struct {
	written chan string // containers whose logs were written to

	mu      sync.Mutex
	inotify *os.File         // nil if inotify is unavailable
	logs    map[int32]string // containers by watch
	watches map[string]int32
}

func newGrowthWatcher() *growthWatcher {
	return &growthWatcher{written: make(chan string), logs: map[int32]string{}, watches: map[string]int32{}}
}

func (g *growthWatcher) open() error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("watch logs: %w", err)
	}
	g.inotify = os.NewFile(uintptr(fd), "inotify")
	return nil
}

// watch requests a report of the next write to a container's log.
func (g *growthWatcher) watch(container, path string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inotify == nil {
		return errors.New("watch log: inotify is unavailable")
	}
	return control(g.inotify, func(inotify int) error {
		id, err := unix.InotifyAddWatch(inotify, path, unix.IN_MODIFY|unix.IN_ONESHOT|unix.IN_DONT_FOLLOW)
		if err != nil {
			return fmt.Errorf("watch log: %w", err)
		}
		g.logs[int32(id)], g.watches[container] = container, int32(id)
		return nil
	})
}

// forget removes the watch of a container's log, if there is one.
func (g *growthWatcher) forget(container string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id, watched := g.watches[container]
	if !watched {
		return
	}
	delete(g.watches, container)
	delete(g.logs, id)
	_ = control(g.inotify, func(inotify int) error {
		_, err := unix.InotifyRmWatch(inotify, uint32(id)) // fails if the file is gone
		return err
	})
}

// run reports writes until ctx is done, and closes the inotify instance.
func (g *growthWatcher) run(ctx context.Context) {
	if g.inotify == nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { g.inotify.Close() })
	defer func() {
		if stop() {
			g.inotify.Close()
		}
	}()
	buf := make([]byte, 16<<10)
	for {
		n, err := g.inotify.Read(buf)
		if err != nil {
			return // closed
		}
		for events := buf[:n]; len(events) >= eventSize; {
			id, mask := int32(binary.NativeEndian.Uint32(events)), binary.NativeEndian.Uint32(events[4:])
			events = events[min(len(events), eventSize+int(binary.NativeEndian.Uint32(events[12:]))):]
			for _, container := range g.takeFired(id, mask) {
				select {
				case g.written <- container:
				case <-ctx.Done():
					return
				}
			}
		}
	}
}

// takeFired removes the watch of an event and returns its container. After lost events, it
// returns all containers.
func (g *growthWatcher) takeFired(id int32, mask uint32) (containers []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if mask&unix.IN_Q_OVERFLOW != 0 {
		for container := range g.watches {
			containers = append(containers, container)
		}
		return containers
	}
	if container, known := g.logs[id]; known {
		delete(g.logs, id)
		delete(g.watches, container)
		return []string{container}
	}
	return nil
}
