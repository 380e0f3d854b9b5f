package image

import (
	"context"
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

	mu    sync.Mutex
	usage *runtimeapi.FilesystemUsage
}

// Usage measures the directory of Docker's storage driver, at most once a minute.
func (f *Filesystem) Usage(ctx context.Context) (*runtimeapi.FilesystemUsage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.usage != nil && time.Since(time.Unix(0, f.usage.Timestamp)) < usageAge {
		return f.usage, nil
	}
	info, err := f.Engine.Info(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(info.DockerRootDir, info.Driver)
	used, err := host.DiskUsage(ctx, dir)
	if err != nil {
		return nil, err
	}
	f.usage = &runtimeapi.FilesystemUsage{
		Timestamp: time.Now().UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: dir},
		UsedBytes: &runtimeapi.UInt64Value{Value: used.Bytes}, InodesUsed: &runtimeapi.UInt64Value{Value: used.Inodes},
	}
	return f.usage, nil
}
