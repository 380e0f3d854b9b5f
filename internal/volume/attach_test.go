package volume

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/volume/plugin"
	"swiftlet/test/poll"
)

// attachedDriver is a driver whose volumes a controller attaches.
type attachedDriver struct{ *driver }

func (attachedDriver) AttachName(_ context.Context, s plugin.Spec) (v1.UniqueVolumeName, error) {
	return v1.UniqueVolumeName(driverName + "/" + s.PV.Spec.FlexVolume.Driver), nil
}

func (d attachedDriver) Attached(_ context.Context, r plugin.Request) error {
	return d.note("attached " + r.DevicePath)
}

// nodeStatus is the part of the node's status that attaching goes by.
type nodeStatus struct {
	mu       sync.Mutex
	inUse    bool
	attached string
}

func (s *nodeStatus) InUse(v1.UniqueVolumeName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inUse
}

func (s *nodeStatus) Attached(v1.UniqueVolumeName) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attached, s.attached != ""
}

func (s *nodeStatus) set(inUse bool, attached string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inUse, s.attached = inUse, attached
}

func TestVolumeWaitsToBeAttached(t *testing.T) {
	n, d, source := newDriver(t)
	status := &nodeStatus{}
	n.kinds = []plugin.Plugin{attachedDriver{d}}
	n.attachments = status
	n.restart()
	heldBack(n) // only events help
	p := n.podNamed("a", source)
	done := make(chan error, 1)
	go func() { _, err := n.Mount(t.Context(), p); done <- err }()
	name := v1.UniqueVolumeName("test/driver/disk")
	poll.Until(t, "the volume to be in use", func() bool { names, _ := n.InUse(); return slices.Equal(names, []v1.UniqueVolumeName{name}) })
	status.set(true, "")
	n.NodeChanged()
	status.set(true, "/dev/disk")
	poll.Until(t, "the mount to see it", func() bool {
		n.NodeChanged()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return true
		default:
			return false
		}
	})
	if want := "attached /dev/disk, stage disk, publish a"; d.called() != want {
		t.Errorf("called %s, want %s", d.called(), want)
	}
	if len(n.events.said) != 0 {
		t.Errorf("a wait of moments was told to users: %q", n.events.said)
	}
	n.unmount("a")
	poll.Until(t, "the volume to be given back", func() bool { names, _ := n.InUse(); return len(names) == 0 })
}

// freeDriver is one that may need no controller.
type freeDriver struct {
	attachedDriver
	free *atomic.Bool
}

func (d freeDriver) AttachName(ctx context.Context, s plugin.Spec) (v1.UniqueVolumeName, error) {
	if d.free.Load() {
		return "", nil
	}
	return d.attachedDriver.AttachName(ctx, s)
}

func TestADriverThatNeedsNoAttachingAfterAll(t *testing.T) {
	n, d, source := newDriver(t)
	var free atomic.Bool
	var told atomic.Int32
	n.kinds = []plugin.Plugin{freeDriver{attachedDriver{d}, &free}}
	n.attachments, n.inUseChanged = &nodeStatus{}, func() { told.Add(1) }
	n.restart()
	heldBack(n) // only events help
	p := n.podNamed("a", source)
	done := make(chan error, 1)
	go func() { _, err := n.Mount(t.Context(), p); done <- err }()
	poll.Until(t, "the volume to be in use", func() bool { names, _ := n.InUse(); return len(names) == 1 })
	free.Store(true)
	n.NodeChanged()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if names, _ := n.InUse(); len(names) != 0 || told.Load() != 1 {
		t.Errorf("in use are %v, which was told %d times; want none, told once", names, told.Load())
	}
	n.unmount("a")
}

func TestADriverThatNeedsNoAttachingAnyMore(t *testing.T) {
	n, d, source := newDriver(t)
	var free atomic.Bool
	n.kinds = []plugin.Plugin{freeDriver{attachedDriver{d}, &free}}
	status := &nodeStatus{}
	status.set(true, "/dev/disk")
	n.attachments = status
	n.restart()
	n.mount(n.podNamed("a", source))
	n.Retry()
	if names, _ := n.InUse(); len(names) != 1 {
		t.Errorf("in use are %v; want the one", names)
	}
	free.Store(true)
	n.Retry()
	poll.Until(t, "the volume to be detached", func() bool { names, _ := n.InUse(); return len(names) == 0 })
	n.unmount("a")
}

func TestUnattachedVolumeIsToldInTheEnd(t *testing.T) {
	n, d, source := newDriver(t)
	n.kinds, n.attachments = []plugin.Plugin{attachedDriver{d}}, &nodeStatus{inUse: true}
	n.restart()
	n.cfg.MountTimeout = 50 * time.Millisecond
	if _, err := n.Mount(t.Context(), n.podNamed("a", source)); err == nil {
		t.Fatal("mounted")
	}
	if want := "FailedMount: Unable to attach or mount volumes: unmounted volumes=[vol], unattached volumes=[vol], failed to process volumes=[]: context deadline exceeded"; !n.events.has(want) {
		t.Errorf("events %q, want %s", n.events.said, want)
	}
}

// fullDriver is one whose node can take no more volumes.
type fullDriver struct {
	attachedDriver
	noRoom bool
}

func (d fullDriver) AttachLimitReached(context.Context, plugin.Spec) bool { return d.noRoom }

// TestNodeWithoutRoom: a pod that waited in vain for its volume is sent away where the node
// can take no more.
func TestNodeWithoutRoom(t *testing.T) {
	for _, noRoom := range []bool{true, false} {
		n, d, source := newDriver(t)
		n.kinds, n.attachments = []plugin.Plugin{fullDriver{attachedDriver{d}, noRoom}}, &nodeStatus{inUse: true}
		n.restart()
		n.cfg.MountTimeout = 50 * time.Millisecond
		_, err := n.Mount(t.Context(), n.podNamed("a", source))
		var full *AttachLimitError
		if errors.As(err, &full) != noRoom {
			t.Fatalf("without room %v: %v", noRoom, err)
		}
		if noRoom && (!slices.Equal(full.Unattached, []string{"vol"}) || !slices.Equal(full.Unmounted, []string{"vol"})) {
			t.Errorf("%+v", full)
		}
		if n.events.has("Unable to attach") == noRoom {
			t.Errorf("without room %v: events %q", noRoom, n.events.said)
		}
	}
}

// TestInUseSettles: as long as something of an earlier agent was not looked at, what is in
// use may be more than is known.
func TestInUseSettles(t *testing.T) {
	n, d, source := newDriver(t)
	n.kinds = []plugin.Plugin{attachedDriver{d}}
	n.restart()
	n.mount(n.podNamed("a", source))
	n.restart()
	settled := func() bool { _, ok := n.InUse(); return ok }
	if settled() {
		t.Error("settled before orphans were looked for")
	}
	if err := n.UnstageOrphans(); err != nil {
		t.Fatal(err)
	}
	if settled() {
		t.Error("settled while nobody has looked at a pod's volume")
	}
	n.mount(n.podNamed("a", source))
	if !settled() {
		t.Error("not settled though all is known")
	}
}
