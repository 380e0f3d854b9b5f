package image

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/engine"
	"swiftlet/cri-docker/internal/host"
)

// usageAge is how old figures of a disk may be: to count files takes seconds on a full node.
const usageAge = time.Minute

// Filesystem measures what images and containers use. Docker keeps both in one directory.
type Filesystem struct {
	Engine *engine.Engine

	mu      sync.Mutex
	usage   *runtimeapi.FilesystemUsage // nil before the first measurement
	current *measurement                // nil when none runs
}

// measurement is a count of files. It goes on when its caller gives up: the next one needs the figure, too.
type measurement struct {
	done chan struct{}
	err  error // to be read after done
}

// Usage measures the directory of Docker's storage driver, at most once a minute. While it is measured again
// the last figure is returned.
func (f *Filesystem) Usage(ctx context.Context) (*runtimeapi.FilesystemUsage, error) {
	f.mu.Lock()
	known := f.usage
	fresh := known != nil && time.Since(time.Unix(0, known.Timestamp)) < usageAge
	if !fresh && f.current == nil {
		f.current = &measurement{done: make(chan struct{})}
		go f.measure(context.WithoutCancel(ctx), f.current)
	}
	running := f.current
	f.mu.Unlock()
	if known != nil {
		return known, nil
	}
	select {
	case <-running.done:
		if running.err != nil {
			return nil, running.err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.usage, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("measure images: %w", ctx.Err())
	}
}

// measure ends by itself: it reads a directory once.
func (f *Filesystem) measure(ctx context.Context, m *measurement) {
	usage, err := f.read(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.usage = usage
	}
	m.err, f.current = err, nil
	close(m.done)
}

func (f *Filesystem) read(ctx context.Context) (*runtimeapi.FilesystemUsage, error) {
	info, err := f.Engine.Info(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(info.DockerRootDir, info.Driver)
	used, err := host.DiskUsage(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.FilesystemUsage{
		Timestamp: time.Now().UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: dir},
		UsedBytes: &runtimeapi.UInt64Value{Value: used.Bytes}, InodesUsed: &runtimeapi.UInt64Value{Value: used.Inodes},
	}, nil
}
