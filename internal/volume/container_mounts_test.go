package volume

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestContainerMounts(t *testing.T) {
	vol := map[string]Mounted{"vol": {HostPath: "/host"}, "ro": {HostPath: "/ro", ReadOnly: true}}
	for _, c := range []struct {
		name string
		in   v1.VolumeMount
		rro  bool
		want Mount
		err  string
	}{
		{name: "absolute path", in: v1.VolumeMount{Name: "vol", MountPath: "/a"},
			want: Mount{HostPath: "/host", ContainerPath: "/a", Propagation: v1.MountPropagationNone}},
		{name: "relative path", in: v1.VolumeMount{Name: "vol", MountPath: "a"},
			want: Mount{HostPath: "/host", ContainerPath: "/a", Propagation: v1.MountPropagationNone}},
		{name: "read-only mount", in: v1.VolumeMount{Name: "vol", MountPath: "/a", ReadOnly: true},
			want: Mount{HostPath: "/host", ContainerPath: "/a", ReadOnly: true, Propagation: v1.MountPropagationNone}},
		{name: "read-only volume", in: v1.VolumeMount{Name: "ro", MountPath: "/a"},
			want: Mount{HostPath: "/ro", ContainerPath: "/a", ReadOnly: true, Propagation: v1.MountPropagationNone}},
		{name: "propagation", in: v1.VolumeMount{Name: "vol", MountPath: "/a", MountPropagation: ptr.To(v1.MountPropagationBidirectional)},
			want: Mount{HostPath: "/host", ContainerPath: "/a", Propagation: v1.MountPropagationBidirectional}},
		{name: "bind mount options", in: v1.VolumeMount{Name: "vol", MountPath: "/a", BindMountOptions: []string{"noexec", "nosuid"}},
			want: Mount{HostPath: "/host", ContainerPath: "/a", Options: []string{"noexec", "nosuid"}, Propagation: v1.MountPropagationNone}},
		{name: "recursive read-only supported", rro: true,
			in:   v1.VolumeMount{Name: "vol", MountPath: "/a", ReadOnly: true, RecursiveReadOnly: ptr.To(v1.RecursiveReadOnlyIfPossible)},
			want: Mount{HostPath: "/host", ContainerPath: "/a", ReadOnly: true, RecursiveReadOnly: true, Propagation: v1.MountPropagationNone}},
		{name: "recursive read-only not supported",
			in:   v1.VolumeMount{Name: "vol", MountPath: "/a", ReadOnly: true, RecursiveReadOnly: ptr.To(v1.RecursiveReadOnlyIfPossible)},
			want: Mount{HostPath: "/host", ContainerPath: "/a", ReadOnly: true, Propagation: v1.MountPropagationNone}},
		{name: "recursive read-only required, not supported",
			in:  v1.VolumeMount{Name: "vol", MountPath: "/a", ReadOnly: true, RecursiveReadOnly: ptr.To(v1.RecursiveReadOnlyEnabled)},
			err: `failed to resolve recursive read-only mode: volume "vol" requested recursive read-only mode, but it is not supported by the runtime`},
		{name: "unknown volume", in: v1.VolumeMount{Name: "none", MountPath: "/a"}, err: `cannot find volume "none" to mount into container "c"`},
		{name: "unknown propagation", in: v1.VolumeMount{Name: "vol", MountPropagation: ptr.To(v1.MountPropagationMode("Odd"))}, err: `invalid MountPropagation mode: "Odd"`},
		{name: "absolute subPath", in: v1.VolumeMount{Name: "vol", SubPath: "/etc"}, err: "error SubPath `/etc` must not be an absolute path"},
		{name: "subPath with dot-dot", in: v1.VolumeMount{Name: "vol", SubPath: "a/../../b"}, err: "unable to provision SubPath `a/../../b`: must not contain '..'"},
		{name: "subPathExpr with an unset variable", in: v1.VolumeMount{Name: "vol", SubPathExpr: "$(NONE)"}, err: "missing value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t)
			n.cfg.BindMountOptions = true
			p := n.pod(v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
			container := &v1.Container{Name: "c", VolumeMounts: []v1.VolumeMount{c.in}}
			expand := func(string) (string, error) { return "", errors.New("missing value") }
			got, err := n.ContainerMounts(t.Context(), p, container, vol, MountOptions{Expand: expand, RecursiveReadOnly: c.rro})
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("error %v, want %s", err, c.err)
				}
				return
			}
			if len(c.in.BindMountOptions) > 0 {
				n.cfg.BindMountOptions = false
				if without, err := n.ContainerMounts(t.Context(), p, container, vol, MountOptions{}); err != nil || without[0].Options != nil {
					t.Errorf("without the feature gate: %v %v", without, err)
				}
			}
			c.want.Name = c.in.Name
			if diff := cmp.Diff([]Mount{c.want}, got); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

// subPathPod mounts an emptyDir and returns its directory and a function that mounts a subPath of it.
func subPathPod(t *testing.T, n *node) (dir string, part func(subPath string) (string, error)) {
	p := n.pod(v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	dir = n.mount(p)
	return dir, func(subPath string) (string, error) {
		c := &v1.Container{Name: "c", VolumeMounts: []v1.VolumeMount{{Name: "vol", MountPath: "/a", SubPath: subPath}}}
		got, err := n.ContainerMounts(t.Context(), p, c, n.MountedVolumes(p.UID), MountOptions{})
		if err != nil {
			return "", err
		}
		return got[0].HostPath, nil
	}
}

func TestSubPath(t *testing.T) {
	n := newNode(t)
	dir, part := subPathPod(t, n)
	target, err := part("sub/dir")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(n.root, "pods/uid-1/volume-subpaths/vol/c/0"); target != want {
		t.Errorf("mounted at %s, want %s", target, want)
	}
	if err := os.WriteFile(filepath.Join(target, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, dir, "sub/dir/file"); got != "x" {
		t.Errorf("the volume holds %q", got)
	}
	var volume, made syscall.Stat_t
	if syscall.Stat(dir, &volume) != nil || syscall.Stat(filepath.Join(dir, "sub/dir"), &made) != nil || volume.Mode != made.Mode {
		t.Errorf("made with mode %o, want the volume's %o", made.Mode, volume.Mode)
	}
	if again, err := part("sub/dir"); err != nil || again != target {
		t.Errorf("a second container start: %s, %v", again, err)
	}
	if points, err := n.deps.Mounter.MountPoints(target); err != nil || len(points) != 1 {
		t.Errorf("mounted %d times, want once", len(points))
	}
	if file, err := part("sub/dir/file"); err != nil || readFile(t, file) != "x" {
		t.Errorf("a file in place of a directory: %v", err)
	}
	if err := n.Unmount(t.Context(), "uid-1"); err != nil {
		t.Error(err)
	}
}

func TestSubPathStaysInTheVolume(t *testing.T) {
	n := newNode(t)
	dir, part := subPathPod(t, n)
	outside, alive := canary(t)
	for name, target := range map[string]string{
		"absolute":  outside,
		"root":      "/",
		"dot-dot":   "../../../../../../../../../../../../.." + outside,
		"magic":     "/proc/self/root" + outside,
		"magic-cwd": "/proc/self/cwd",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		for _, sub := range []string{name, name + "/canary", name + "/new/folder"} {
			if got, err := part(sub); err == nil {
				t.Errorf("%s led to %s", sub, got)
			}
		}
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 || !alive() {
		t.Error("something was made or changed outside the volume")
	}
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"relative": "real", "absolute-inside": filepath.Join(dir, "real")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		for _, sub := range []string{name, name + "/new"} {
			if _, err := part(sub); err != nil {
				t.Errorf("%s stays inside: %v", sub, err)
			}
		}
	}
}

// swaps is how often a directory is replaced with a link during mounts.
const swaps = 10_000

// TestSubPathRace replaces a directory with a link to the outside while it is being mounted.
func TestSubPathRace(t *testing.T) {
	n := newNode(t)
	dir, part := subPathPod(t, n)
	outside, _ := canary(t)
	place, real, link := filepath.Join(dir, "p"), filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(real, 0o755), os.Symlink(outside, link), os.Mkdir(place, 0o755)); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var done atomic.Int64
	swapped := make(chan struct{})
	go func() {
		defer close(swapped)
		for !stop.Load() {
			if exchange(place, link) == nil {
				done.Add(1)
			}
		}
	}()
	mounted := 0
	for mounted < 1000 || done.Load() < swaps {
		target, err := part("p/sub")
		if err != nil {
			continue
		}
		mounted++
		if _, err := os.Lstat(filepath.Join(target, "canary")); err == nil {
			t.Error("the mount shows the outside")
			break
		}
	}
	stop.Store(true)
	<-swapped
	t.Logf("%d mounts during %d swaps", mounted, done.Load())
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("made outside the volume: %v", entries)
	}
}

// exchange swaps two names atomically.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}
