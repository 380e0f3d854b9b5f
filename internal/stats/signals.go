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

// Room is how much is left of something.
type Room struct {
	Available, Capacity uint64
	At                  time.Time
}

// Memory is how much memory is left to a group.
type Memory struct {
	Room
	// Idle is the part of what is in use that counts as available: files that nobody has
	// looked at lately.
	Idle uint64
}

// Disk is how much is left of a file system.
type Disk struct{ Space, Inodes Room }

// Signals is how much is left of all that pods can use up. What could not be told is nil.
type Signals struct {
	Memory, PodMemory          *Memory
	Node, Images, Containers   *Disk
	PIDs                       *Room
	OwnImageFs, OwnContainerFs bool // images are elsewhere than Node, containers' files than images
}

// runtimePatience is how long Signals waits for the runtime to tell where its files are.
// Memory cannot wait for that.
const runtimePatience = 500 * time.Millisecond

// Signals reads how much is left. It is a handful of small files and asks the runtime once
// only, so that it can be asked often. It fails where nothing at all can be told.
func (s *Stats) Signals(ctx context.Context) (Signals, error) {
	now := s.deps.Clock.Now()
	buf := newScratch()
	var out Signals
	trouble := errors.Join(
		s.addMemory(&out, buf, now),
		s.addPodMemory(&out, buf, now),
		s.addNodeDisk(&out, now),
		s.addPIDs(&out, buf, now),
		s.addRuntimeDisks(ctx, &out, now),
	)
	if out == (Signals{}) {
		return out, trouble
	}
	s.partial.say(s.deps.Log, trouble)
	return out, nil
}

func (s *Stats) addMemory(out *Signals, buf *scratch, now time.Time) error {
	root, err := s.groups.memory(buf, "/")
	if err != nil {
		return fmt.Errorf("read how much memory is left: %w", err)
	}
	out.Memory = memoryLeft(root, now)
	if s.cfg.SparesHugePages {
		set := min(out.Memory.Available, s.cfg.Machine.HugePages)
		out.Memory.Available -= set
		out.Memory.Capacity -= set
	}
	return nil
}

func (s *Stats) addPodMemory(out *Signals, buf *scratch, now time.Time) error {
	if s.cfg.PodsGroup == "" {
		return nil
	}
	pods, err := s.groups.memory(buf, s.cfg.PodsGroup)
	switch {
	case err == nil && bounded(pods.limit):
		out.PodMemory = memoryLeft(pods, now)
	case err != nil && !gone(err):
		return fmt.Errorf("read how much memory is left to pods: %w", err)
	}
	return nil
}

func (s *Stats) addNodeDisk(out *Signals, now time.Time) error {
	node, err := spaceOf(s.cfg.RootDir)
	if err == nil {
		out.Node = node.left(now)
	}
	return err
}

func (s *Stats) addPIDs(out *Signals, buf *scratch, now time.Time) error {
	limit := s.cfg.Machine.MaxPIDs
	if limit <= 0 {
		return nil
	}
	tasks, err := runningTasks(buf)
	if err == nil {
		out.PIDs = &Room{Available: uint64(max(limit-tasks, 0)), Capacity: uint64(limit), At: now}
	}
	return err
}

// addRuntimeDisks adds the file systems of the runtime, if it has told yet where they are.
func (s *Stats) addRuntimeDisks(ctx context.Context, out *Signals, now time.Time) error {
	at, err := s.findPlaces(ctx)
	if err != nil {
		return err
	}
	images, ofImages := spaceOf(at.images)
	if ofImages == nil {
		out.Images = images.left(now)
	}
	containers, ofContainers := spaceOf(at.containers)
	if ofContainers == nil {
		out.Containers = containers.left(now)
	}
	if out.Images != nil || out.Containers != nil {
		out.OwnImageFs, out.OwnContainerFs = at.ownImages, at.ownContainers
	}
	err = errors.Join(ofImages, ofContainers)
	if err != nil {
		s.places.forget()
	}
	return err
}

// findPlaces asks the runtime where its files are, and leaves it to a later look to hear of
// that where it takes its time.
func (s *Stats) findPlaces(ctx context.Context) (runtimePlaces, error) {
	shared := context.WithoutCancel(ctx)
	answer := s.flight.DoChan("places", func() (any, error) { return s.places.find(shared, s.deps.Runtime, s.cfg.RootDir) })
	ctx, cancel := context.WithTimeout(ctx, runtimePatience)
	defer cancel()
	select {
	case got := <-answer:
		at, _ := got.Val.(runtimePlaces)
		return at, got.Err
	case <-ctx.Done():
		return runtimePlaces{}, fmt.Errorf("ask the runtime where its files are: %w", ctx.Err())
	}
}

func memoryLeft(m memoryUsage, now time.Time) *Memory {
	available := m.limit - min(m.limit, m.workingSet)
	return &Memory{
		Room: Room{Available: available, Capacity: available + m.workingSet, At: now},
		Idle: m.usage - m.workingSet,
	}
}

func (on space) left(now time.Time) *Disk {
	return &Disk{
		Space:  Room{Available: on.available, Capacity: on.capacity, At: now},
		Inodes: Room{Available: on.inodesFree, Capacity: on.inodes, At: now},
	}
}

// places remembers where the runtime keeps its files: they do not move while it runs.
type places struct {
	mu    *sync.Mutex
	known *runtimePlaces
}

type runtimePlaces struct {
	images, containers       string
	ownImages, ownContainers bool
}

func newPlaces() places { return places{mu: new(sync.Mutex)} }

func (p *places) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = nil
}

func (p *places) find(ctx context.Context, runtime Runtime, root string) (runtimePlaces, error) {
	p.mu.Lock()
	known := p.known
	p.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	info, err := runtime.ImageFsInfo(ctx)
	if err != nil {
		return runtimePlaces{}, err
	}
	at, err := placesOf(info, root)
	if err != nil {
		return runtimePlaces{}, fmt.Errorf("find the file systems of the runtime: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = &at
	return at, nil
}

func placesOf(info *runtimeapi.ImageFsInfoResponse, root string) (runtimePlaces, error) {
	var at runtimePlaces
	if len(info.GetImageFilesystems()) == 0 {
		return at, fmt.Errorf("it tells of none for images")
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
