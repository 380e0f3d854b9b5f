// Package emptydir mounts emptyDir volumes: a directory on disk, a tmpfs or huge pages, for as long
// as the pod exists. Other kinds of volumes use it to prepare their directories.
package emptydir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/volume/ownership"
	"swiftlet/internal/volume/plugin"
)

// Name is the kind's qualified name.
const Name = "kubernetes.io/empty-dir"

// Mounter is the part of mounts.Kernel that the plugin uses.
type Mounter interface {
	Tmpfs(dir string, size int64) error
	HugePages(dir, pageSize string) error
	Mounted(path string) (bool, error)
	FileSystem(path string) (int64, error)
}

// Quotas tracks the usage of a directory in the kernel, if supported, and creates the file marker.
// quota.Projects implements it.
type Quotas interface{ Track(dir, marker string) }

// Deps are the dependencies of the plugin.
type Deps struct {
	Mounter Mounter
	// Quotas may be nil: then usage is not tracked.
	Quotas Quotas
	// Allocatable is the node's allocatable resources, which limit a tmpfs without a size limit.
	Allocatable func() v1.ResourceList
}

// Plugin mounts emptyDir volumes.
type Plugin struct{ deps Deps }

// New returns the plugin.
func New(deps Deps) *Plugin { return &Plugin{deps} }

func (p *Plugin) Name() string { return Name }

func (p *Plugin) Handles(s plugin.Spec) bool { return s.PV == nil && s.Volume.EmptyDir != nil }

func (p *Plugin) SetUp(_ context.Context, r plugin.Request) (plugin.Result, error) {
	dir := r.VolumeDir(Name)
	of := r.Volume.EmptyDir
	spec := Spec{Medium: of.Medium, SizeLimit: of.SizeLimit, Mode: of.Mode, MetaName: r.Volume.Name}
	if err := p.Prepare(r, dir, spec); err != nil {
		return plugin.Result{}, err
	}
	return plugin.Result{HostPath: dir, SELinuxRelabel: true}, nil
}

// Spec describes the directory that Prepare creates.
type Spec struct {
	Medium    v1.StorageMedium
	SizeLimit *resource.Quantity
	// Mode is the Unix mode of the directory; nil means 0777.
	Mode *int32
	// MetaName names the metadata directory with the ready file, unique per volume of the pod.
	MetaName string
}

// Prepare creates the directory and marks it as ready. It does not touch a ready directory again:
// the pod may have changed its mode.
func (p *Plugin) Prepare(r plugin.Request, dir string, g Spec) error {
	if err := p.prepare(r, dir, g); err != nil {
		return err
	}
	// Only in a user namespace can the owner of a file not change its project. Elsewhere the pod
	// could, and its usage would be wrong.
	if p.deps.Quotas != nil && g.Medium == v1.StorageMediumDefault && r.Pod.Spec.HostUsers != nil && !*r.Pod.Spec.HostUsers {
		p.deps.Quotas.Track(dir, filepath.Join(r.MetaDir(Name, g.MetaName), "counted"))
	}
	return nil
}

func (p *Plugin) prepare(r plugin.Request, dir string, g Spec) error {
	ready := filepath.Join(r.MetaDir(Name, g.MetaName), "ready")
	inMemory := g.Medium != v1.StorageMediumDefault
	mounted := false
	if inMemory {
		var err error
		if mounted, err = p.mountedMemory(dir, g.Medium); err != nil {
			return err
		}
	}
	if isFile(ready) && isDir(dir) && mounted == inMemory {
		return nil
	}
	if !mounted {
		if err := p.create(r, dir, g); err != nil {
			return err
		}
	}
	if group := r.FSGroup(); group != nil {
		if err := r.ChangeGroup(dir, ownership.Group{ID: *group}); err != nil {
			return err
		}
	}
	return markReady(ready)
}

func (p *Plugin) create(r plugin.Request, dir string, g Spec) error {
	if err := makeDir(dir, g.fileMode()); err != nil {
		return err
	}
	switch {
	case g.Medium == v1.StorageMediumDefault:
		return nil
	case g.Medium == v1.StorageMediumMemory:
		return p.deps.Mounter.Tmpfs(dir, memorySize(r.Pod, g.SizeLimit, p.deps.Allocatable()))
	case isHugePages(g.Medium):
		size, err := pageSize(g.Medium, r.Pod)
		if err != nil {
			return err
		}
		return p.deps.Mounter.HugePages(dir, size)
	}
	return fmt.Errorf("unknown storage medium %q", g.Medium)
}

// mountedMemory reports whether a tmpfs, or huge pages, are already mounted at dir.
func (p *Plugin) mountedMemory(dir string, medium v1.StorageMedium) (bool, error) {
	mounted, err := p.deps.Mounter.Mounted(dir)
	if err != nil || !mounted {
		return false, err
	}
	kind, err := p.deps.Mounter.FileSystem(dir)
	if err != nil {
		return false, err
	}
	want := int64(unix.TMPFS_MAGIC)
	if isHugePages(medium) {
		want = unix.HUGETLBFS_MAGIC
	}
	if kind != want {
		return false, fmt.Errorf("%s: another file system is mounted there (type %#x)", dir, kind)
	}
	return true, nil
}

// fileMode is 0777 by default: the pod may run as any user.
func (g Spec) fileMode() fs.FileMode {
	if g.Mode == nil {
		return 0o777
	}
	mode := fs.FileMode(*g.Mode) & fs.ModePerm
	if *g.Mode&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

func makeDir(dir string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("create parent directory of volume: %w", err)
	}
	err := os.Mkdir(dir, mode)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create volume directory: %w", err)
	}
	// Mkdir applied the umask.
	if err := os.Chmod(dir, mode); err != nil {
		return fmt.Errorf("set mode of volume directory: %w", err)
	}
	return nil
}

func markReady(ready string) error {
	if err := os.MkdirAll(filepath.Dir(ready), 0o750); err != nil {
		return fmt.Errorf("mark volume as ready: %w", err)
	}
	if err := os.WriteFile(ready, nil, 0o640); err != nil {
		return fmt.Errorf("mark volume as ready: %w", err)
	}
	return nil
}

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func isHugePages(m v1.StorageMedium) bool {
	return m == v1.StorageMediumHugePages || strings.HasPrefix(string(m), string(v1.StorageMediumHugePagesPrefix))
}
