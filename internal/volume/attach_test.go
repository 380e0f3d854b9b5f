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
	return d.record("attached " + r.DevicePath)
}

// nodeStatus is a fake of the node's volumesInUse and volumesAttached.
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

func TestMountWaitsForAttach(t *testing.T) {
	n, d, source := newDriver(t)
	status := &nodeStatus{}
	n.kinds = []plugin.Plugin{attachedDriver{d}}
	n.attachments = status
	n.restart()
	useFakeClock(n) // no back-off expires
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
	if len(n.events.recorded) != 0 {
		t.Errorf("a short wait caused events: %q", n.events.recorded)
	}
	n.unmount("a")
	poll.Until(t, "the volume not to be in use", func() bool { names, _ := n.InUse(); return len(names) == 0 })
}

// freeDriver may need no attach.
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

func TestWaitEndsWhenAttachIsNotRequired(t *testing.T) {
	n, d, source := newDriver(t)
	var free atomic.Bool
	var changes atomic.Int32
	n.kinds = []plugin.Plugin{freeDriver{attachedDriver{d}, &free}}
	n.attachments, n.inUseChanged = &nodeStatus{}, func() { changes.Add(1) }
	n.restart()
	useFakeClock(n) // no back-off expires
	p := n.podNamed("a", source)
	done := make(chan error, 1)
	go func() { _, err := n.Mount(t.Context(), p); done <- err }()
	poll.Until(t, "the volume to be in use", func() bool { names, _ := n.InUse(); return len(names) == 1 })
	free.Store(true)
	n.NodeChanged()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if names, _ := n.InUse(); len(names) != 0 || changes.Load() != 1 {
		t.Errorf("in use are %v after %d notifications; want none, after one", names, changes.Load())
	}
	n.unmount("a")
}

func TestVolumeIsDetachedWhenAttachIsNotRequired(t *testing.T) {
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

func TestUnattachedVolumeIsReportedAtTimeout(t *testing.T) {
	n, d, source := newDriver(t)
	n.kinds, n.attachments = []plugin.Plugin{attachedDriver{d}}, &nodeStatus{inUse: true}
	n.restart()
	n.cfg.MountTimeout = 50 * time.Millisecond
	if _, err := n.Mount(t.Context(), n.podNamed("a", source)); err == nil {
		t.Fatal("mounted")
	}
	if want := "FailedMount: Unable to attach or mount volumes: unmounted volumes=[vol], unattached volumes=[vol], failed to process volumes=[]: context deadline exceeded"; !n.events.has(want) {
		t.Errorf("events %q, want %s", n.events.recorded, want)
	}
}

// fullDriver may have reached its attach limit.
type fullDriver struct {
	attachedDriver
	limitReached bool
}

func (d fullDriver) AttachLimitReached(context.Context, plugin.Spec) bool { return d.limitReached }

// TestAttachLimit: at the timeout a pod is rejected if the node has reached its attach limit.
func TestAttachLimit(t *testing.T) {
	for _, limitReached := range []bool{true, false} {
		n, d, source := newDriver(t)
		n.kinds, n.attachments = []plugin.Plugin{fullDriver{attachedDriver{d}, limitReached}}, &nodeStatus{inUse: true}
		n.restart()
		n.cfg.MountTimeout = 50 * time.Millisecond
		_, err := n.Mount(t.Context(), n.podNamed("a", source))
		var full *AttachLimitError
		if errors.As(err, &full) != limitReached {
			t.Fatalf("limit reached %v: %v", limitReached, err)
		}
		if limitReached && (!slices.Equal(full.Unattached, []string{"vol"}) || !slices.Equal(full.Unmounted, []string{"vol"})) {
			t.Errorf("%+v", full)
		}
		if n.events.has("Unable to attach") == limitReached {
			t.Errorf("limit reached %v: events %q", limitReached, n.events.recorded)
		}
	}
}

// TestInUseBecomesComplete: until all volumes of an earlier agent are known, there may be more in use.
func TestInUseBecomesComplete(t *testing.T) {
	n, d, source := newDriver(t)
	n.kinds = []plugin.Plugin{attachedDriver{d}}
	n.restart()
	n.mount(n.podNamed("a", source))
	n.restart()
	complete := func() bool { _, ok := n.InUse(); return ok }
	if complete() {
		t.Error("complete before orphans were unstaged")
	}
	if err := n.UnstageOrphans(); err != nil {
		t.Fatal(err)
	}
	if complete() {
		t.Error("complete before the pod was mounted")
	}
	n.mount(n.podNamed("a", source))
	if !complete() {
		t.Error("not complete though all volumes are known")
	}
}
