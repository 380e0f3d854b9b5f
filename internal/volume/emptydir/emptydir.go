// Package emptydir brings up scratch space: a folder on disk, or memory, that lives as
// long as its pod. Other kinds of volumes use it as the ground for their files.
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

// Mounter is what memory needs of the kernel.
type Mounter interface {
	Tmpfs(dir string, size int64) error
	HugePages(dir, pageSize string) error
	Mounted(path string) (bool, error)
	FileSystem(path string) (int64, error)
}

// Quotas has the kernel count what is in a folder, where it can; quota.Projects are such. The
// file note is theirs to make.
type Quotas interface{ Count(dir, note string) }

// Deps is what the plugin works with.
type Deps struct {
	Mounter Mounter
	// Quotas may be nil: then nobody counts on.
	Quotas Quotas
	// Allocatable is what pods may use of this node: memory without a limit is bounded by it.
	Allocatable func() v1.ResourceList
}

// Plugin brings up emptyDir volumes.
type Plugin struct{ deps Deps }

// New makes the plugin.
func New(deps Deps) *Plugin { return &Plugin{deps} }

func (p *Plugin) Name() string { return Name }

func (p *Plugin) Handles(s plugin.Spec) bool { return s.PV == nil && s.Volume.EmptyDir != nil }

func (p *Plugin) SetUp(_ context.Context, r plugin.Request) (plugin.Result, error) {
	dir := r.VolumeDir(Name)
	of := r.Volume.EmptyDir
	ground := Ground{Medium: of.Medium, SizeLimit: of.SizeLimit, Mode: of.Mode, Note: r.Volume.Name}
	if err := p.Prepare(r, dir, ground); err != nil {
		return plugin.Result{}, err
	}
	return plugin.Result{HostPath: dir, SELinuxRelabel: true}, nil
}

// Ground describes the space that Prepare makes.
type Ground struct {
	Medium    v1.StorageMedium
	SizeLimit *resource.Quantity
	// Mode is the folder's, in the kernel's own bits; nil opens it to everybody.
	Mode *int32
	// Note is the folder under which readiness is noted, distinct per volume.
	Note string
}

// Prepare makes the space at dir and notes that it is ready. Space
// that was noted as ready is not touched again: its modes are the pod's to change.
func (p *Plugin) Prepare(r plugin.Request, dir string, g Ground) error {
	if err := p.prepare(r, dir, g); err != nil {
		return err
	}
	// Within a user namespace nobody can take files out of their project, elsewhere their
	// owner can: the count would be the pod's own word.
	if p.deps.Quotas != nil && g.Medium == v1.StorageMediumDefault && r.Pod.Spec.HostUsers != nil && !*r.Pod.Spec.HostUsers {
		p.deps.Quotas.Count(dir, filepath.Join(r.MetaDir(Name, g.Note), "counted"))
	}
	return nil
}

func (p *Plugin) prepare(r plugin.Request, dir string, g Ground) error {
	ready := filepath.Join(r.MetaDir(Name, g.Note), "ready")
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
		if err := p.makeSpace(r, dir, g); err != nil {
			return err
		}
	}
	if group := r.FSGroup(); group != nil {
		if err := ownership.Apply(dir, ownership.Group{ID: *group}); err != nil {
			return err
		}
	}
	return note(ready)
}

func (p *Plugin) makeSpace(r plugin.Request, dir string, g Ground) error {
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

// mountedMemory reports whether memory of the right kind is already mounted at dir.
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
		return false, fmt.Errorf("%s: something else is mounted there (file system type %#x)", dir, kind)
	}
	return true, nil
}

// fileMode is open to all unless the pod says otherwise: it may run as any user.
func (g Ground) fileMode() fs.FileMode {
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
		return fmt.Errorf("make volume folder: %w", err)
	}
	err := os.Mkdir(dir, mode)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make volume: %w", err)
	}
	// The umask took bits away.
	if err := os.Chmod(dir, mode); err != nil {
		return fmt.Errorf("set mode of volume: %w", err)
	}
	return nil
}

func note(ready string) error {
	if err := os.MkdirAll(filepath.Dir(ready), 0o750); err != nil {
		return fmt.Errorf("note volume as ready: %w", err)
	}
	if err := os.WriteFile(ready, nil, 0o640); err != nil {
		return fmt.Errorf("note volume as ready: %w", err)
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
