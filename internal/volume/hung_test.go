package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/contain"
	"swiftlet/test/hungfs"
	"swiftlet/test/poll"
)

// within fails the test if f does not return in time.
func within(t *testing.T, d time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatalf("%s does not return", what)
	}
}

// hungPod is a pod with a subPath of a hostPath volume, whose file system hangs once the volume is mounted.
func hungPod(t *testing.T) (*node, *v1.Pod, *hungfs.FS) {
	if os.Getuid() != 0 {
		t.Skip("needs root to mount")
	}
	n := newNode(t)
	n.cfg.HangTimeout = 200 * time.Millisecond
	dir := filepath.Join(t.TempDir(), "fs")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f := hungfs.Mount(t, dir)
	p := n.pod(v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: dir}})
	p.Spec.Containers[0].VolumeMounts[0].SubPath = "sub"
	n.mount(p)
	f.Hang()
	return n, p, f
}

// A subPath on a file system that does not answer neither keeps the pod from being stopped nor the agent:
// ContainerMounts returns when its context ends, with an error that names the step, and so do Unmount and
// Run.
func TestSubPathOnHungFileSystem(t *testing.T) {
	n, p, f := hungPod(t)
	c := &p.Spec.Containers[0]
	within(t, 5*time.Second, "ContainerMounts", func() {
		_, err := n.ContainerMounts(t.Context(), p, c, n.MountedVolumes(p.UID), MountOptions{})
		if err == nil || !strings.Contains(err.Error(), `volumeMount "vol" of container "c"`) || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("got %v, want an error that names the volumeMount and that its file system does not answer", err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	within(t, 5*time.Second, "canceled ContainerMounts", func() {
		cancel()
		if _, err := n.ContainerMounts(ctx, p, c, n.MountedVolumes(p.UID), MountOptions{}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that of the context", err)
		}
	})
	calls := &n.pods[p.UID].subPaths
	if running := calls.Running(); len(running) != 1 {
		t.Errorf("calls that hang: %q, want one for the subPath", running)
	}
	within(t, 5*time.Second, "Unmount", func() {
		if err := n.Unmount(t.Context(), p.UID); err != nil {
			t.Errorf("unmount a pod whose subPath hangs: %v", err)
		}
	})
	f.Release()
	poll.Until(t, "the abandoned call to end", func() bool { return len(calls.Running()) == 0 })
	if left, _ := os.ReadDir(n.podDir(p.UID)); len(left) != 0 {
		t.Errorf("the abandoned call has left %v", left)
	}
}

// An unmount that hangs is reported as an event of the pod, and ends with its context.
func TestHungUnmountIsReported(t *testing.T) {
	n := newNode(t)
	n.cfg.HangTimeout = 50 * time.Millisecond
	release := make(chan struct{})
	n.deps.Mounter = &hungMounter{Mounter: n.deps.Mounter, release: release}
	p := n.pod(v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	n.mount(p)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	within(t, 5*time.Second, "Unmount", func() {
		if err := n.Unmount(ctx, p.UID); !errors.As(err, new(*contain.HangError)) {
			t.Errorf("got %v, want a *HangError", err)
		}
	})
	if !n.events.has("FailedUnMount: ") {
		t.Errorf("no event: %v", n.events.recorded)
	}
	close(release)
	if err := n.Unmount(t.Context(), p.UID); err != nil {
		t.Error(err)
	}
}

// hungMounter hangs when it unmounts.
type hungMounter struct {
	Mounter
	release chan struct{}
}

func (m *hungMounter) UnmountBeneath(dir string) error {
	<-m.release
	return m.Mounter.UnmountBeneath(dir)
}

// hungSubPaths hangs when it mounts a subPath of one pod.
type hungSubPaths struct {
	Mounter
	of      string // the directory of the pod
	release chan struct{}
}

func (m *hungSubPaths) Mounted(path string) (bool, error) {
	if strings.HasPrefix(path, filepath.Join(m.of, subPathsDir)) {
		<-m.release
	}
	return m.Mounter.Mounted(path)
}

// Containers of a pod may have any number of subPaths on a file system that does not answer. Other pods mount
// theirs and end nevertheless, and the threads that hang are few.
func TestHungSubPathsOfOnePod(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to mount")
	}
	n := newNode(t)
	n.cfg.HangTimeout = 20 * time.Millisecond
	hostile, other := n.pod(v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}), n.pod(v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	hostile.UID = "hostile"
	hung := &hungSubPaths{Mounter: n.deps.Mounter, of: n.podDir(hostile.UID), release: make(chan struct{})}
	n.deps.Mounter = hung
	for _, p := range []*v1.Pod{hostile, other} {
		p.Spec.Containers[0].VolumeMounts[0].SubPath = "sub"
		n.mount(p)
	}
	for i := range 200 {
		c := hostile.Spec.Containers[0].DeepCopy()
		c.Name = fmt.Sprint("c", i)
		if _, err := n.ContainerMounts(t.Context(), hostile, c, n.MountedVolumes(hostile.UID), MountOptions{}); err == nil {
			t.Fatalf("container %d: no error", i)
		}
	}
	calls := &n.pods[hostile.UID].subPaths
	if running := calls.Running(); len(running) > maxHungSubPaths {
		t.Errorf("%d calls hang, want at most %d", len(running), maxHungSubPaths)
	}
	n.cfg.HangTimeout = testTimeout
	if _, err := n.ContainerMounts(t.Context(), other, &other.Spec.Containers[0], n.MountedVolumes(other.UID), MountOptions{}); err != nil {
		t.Errorf("mounts of another pod: %v", err)
	}
	if err := n.Unmount(t.Context(), other.UID); err != nil {
		t.Errorf("unmount of another pod: %v", err)
	}
	close(hung.release)
	poll.Until(t, "the abandoned calls to end", func() bool { return len(calls.Running()) == 0 })
}
