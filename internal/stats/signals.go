package stats

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Level is how much of a resource is available.
type Level struct {
	Available, Capacity uint64
	At                  time.Time
}

// Memory is the available memory of a cgroup.
type Memory struct {
	Level
	// InactiveFile is the part of the used memory that counts as available: the page cache on
	// the kernel's inactive list.
	InactiveFile uint64
}

// Disk is the available space and inodes of a file system.
type Disk struct{ Space, Inodes Level }

// Signals are the eviction signals. One that could not be read is nil.
type Signals struct {
	Memory, PodMemory          *Memory
	Node, Images, Containers   *Disk
	PIDs                       *Level
	OwnImageFs, OwnContainerFs bool // images are not on Node, writable layers not with the images
}

// runtimeFsTimeout bounds how long Signals waits for the runtime to report its file systems:
// memory pressure cannot wait for that.
const runtimeFsTimeout = 500 * time.Millisecond

// Signals reads the eviction signals. It is cheap: it reads a few small files, and asks the
// runtime only once. It fails only if no signal can be read.
func (s *Stats) Signals(ctx context.Context) (Signals, error) {
	now := s.deps.Clock.Now()
	buf := newFileReader()
	var out Signals
	err := errors.Join(
		s.addMemory(&out, buf, now),
		s.addPodMemory(&out, buf, now),
		s.addNodeDisk(&out, now),
		s.addPIDs(&out, buf, now),
		s.addRuntimeDisks(ctx, &out, now),
	)
	if out == (Signals{}) {
		return out, err
	}
	s.signalErrors.report(s.deps.Log, err)
	return out, nil
}

func (s *Stats) addMemory(out *Signals, buf *fileReader, now time.Time) error {
	root, err := s.groups.memory(buf, "/")
	if err != nil {
		return fmt.Errorf("read memory of the node: %w", err)
	}
	out.Memory = availableMemory(root, now)
	if s.cfg.ExcludeHugePages {
		huge := min(out.Memory.Available, s.cfg.Machine.HugePages)
		out.Memory.Available -= huge
		out.Memory.Capacity -= huge
	}
	return nil
}

func (s *Stats) addPodMemory(out *Signals, buf *fileReader, now time.Time) error {
	if s.cfg.PodsCgroup == "" {
		return nil
	}
	pods, err := s.groups.memory(buf, s.cfg.PodsCgroup)
	switch {
	case err == nil && hasLimit(pods.limit):
		out.PodMemory = availableMemory(pods, now)
	case err != nil && !isGone(err):
		return fmt.Errorf("read memory of all pods: %w", err)
	}
	return nil
}

func (s *Stats) addNodeDisk(out *Signals, now time.Time) error {
	node, err := statfs(s.cfg.RootDir)
	if err == nil {
		out.Node = node.disk(now)
	}
	return err
}

func (s *Stats) addPIDs(out *Signals, buf *fileReader, now time.Time) error {
	limit := s.cfg.Machine.MaxPIDs
	if limit <= 0 {
		return nil
	}
	tasks, err := runningTasks(buf)
	if err == nil {
		out.PIDs = &Level{Available: uint64(max(limit-tasks, 0)), Capacity: uint64(limit), At: now}
	}
	return err
}

// addRuntimeDisks adds the file systems of the runtime, once it has reported them.
func (s *Stats) addRuntimeDisks(ctx context.Context, out *Signals, now time.Time) error {
	at, err := s.findRuntimeFs(ctx)
	if err != nil {
		return err
	}
	images, imagesErr := statfs(at.images)
	if imagesErr == nil {
		out.Images = images.disk(now)
	}
	containers, containersErr := statfs(at.containers)
	if containersErr == nil {
		out.Containers = containers.disk(now)
	}
	if out.Images != nil || out.Containers != nil {
		out.OwnImageFs, out.OwnContainerFs = at.ownImages, at.ownContainers
	}
	err = errors.Join(imagesErr, containersErr)
	if err != nil {
		s.runtimeFs.drop()
	}
	return err
}

// findRuntimeFs asks the runtime for its file systems. If the answer takes too long, a later
// call receives it.
func (s *Stats) findRuntimeFs(ctx context.Context) (runtimeFileSystems, error) {
	shared := context.WithoutCancel(ctx)
	answer := s.flight.DoChan("runtime file systems", func() (any, error) { return s.runtimeFs.find(shared, s.deps.Runtime, s.cfg.RootDir) })
	ctx, cancel := context.WithTimeout(ctx, runtimeFsTimeout)
	defer cancel()
	select {
	case got := <-answer:
		at, _ := got.Val.(runtimeFileSystems)
		return at, got.Err
	case <-ctx.Done():
		return runtimeFileSystems{}, fmt.Errorf("read file systems of the runtime: %w", ctx.Err())
	}
}

func availableMemory(m memoryUsage, now time.Time) *Memory {
	available := m.limit - min(m.limit, m.workingSet)
	return &Memory{
		Level:        Level{Available: available, Capacity: available + m.workingSet, At: now},
		InactiveFile: m.usage - m.workingSet,
	}
}

func (fs fsInfo) disk(now time.Time) *Disk {
	return &Disk{
		Space:  Level{Available: fs.available, Capacity: fs.capacity, At: now},
		Inodes: Level{Available: fs.inodesFree, Capacity: fs.inodes, At: now},
	}
}

// runtimeFsCache caches the file systems of the runtime, which do not change while it runs.
type runtimeFsCache struct {
	mu     *sync.Mutex
	cached *runtimeFileSystems
}

type runtimeFileSystems struct {
	images, containers       string
	ownImages, ownContainers bool
}

func newRuntimeFsCache() runtimeFsCache { return runtimeFsCache{mu: new(sync.Mutex)} }

func (c *runtimeFsCache) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cached = nil
}

func (c *runtimeFsCache) find(ctx context.Context, runtime Runtime, root string) (runtimeFileSystems, error) {
	c.mu.Lock()
	cached := c.cached
	c.mu.Unlock()
	if cached != nil {
		return *cached, nil
	}
	info, err := runtime.ImageFsInfo(ctx)
	if err != nil {
		return runtimeFileSystems{}, err
	}
	at, err := runtimeFsFrom(info, root)
	if err != nil {
		return runtimeFileSystems{}, fmt.Errorf("find file systems of the runtime: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cached = &at
	return at, nil
}

func runtimeFsFrom(info *runtimeapi.ImageFsInfoResponse, root string) (runtimeFileSystems, error) {
	var at runtimeFileSystems
	if len(info.GetImageFilesystems()) == 0 {
		return at, errors.New("the runtime reports none for images")
	}
	at.images = info.ImageFilesystems[0].GetFsId().GetMountpoint()
	at.containers = at.images
	if len(info.ContainerFilesystems) > 0 {
		at.containers = info.ContainerFilesystems[0].GetFsId().GetMountpoint()
	}
	devices := map[string]uint64{}
	for _, dir := range []string{root, at.images, at.containers} {
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil {
			return at, &pathError{dir, err}
		}
		devices[dir] = uint64(st.Dev)
	}
	at.ownContainers = devices[at.containers] != devices[at.images]
	at.ownImages = devices[at.images] != devices[root] || at.ownContainers
	return at, nil
}
