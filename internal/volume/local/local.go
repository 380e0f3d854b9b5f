// Package local mounts local PersistentVolumes: a directory or a disk of this node. It formats an
// empty disk, and mounts a disk once for all pods.
package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/volume/ownership"
	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/safepath"
)

// Name is the kind's qualified name.
const Name = "kubernetes.io/local-volume"

// defaultFileSystem is the default fsType.
const defaultFileSystem = "ext4"

// Mounter is the part of mounts.Kernel that the plugin uses.
type Mounter interface {
	Bind(fd int, target string) error
	Mounted(path string) (bool, error)
	Unmount(path string) error
	MountPoints(dir string) ([]string, error)
}

// Disks formats, mounts and resizes file systems with the node's programs.
type Disks interface {
	// FormatAndMount mounts a disk, and formats an empty one first.
	FormatAndMount(device, target, fileSystem string, options []string) error
	// Mount mounts with options.
	Mount(source, target, fileSystem string, options []string) error
	// Resize grows the mounted file system to the size of the disk.
	Resize(device, mountedAt string) error
}

// Deps are the dependencies of the plugin.
type Deps struct {
	RootDir string
	Mounter Mounter
	Disks   Disks
	Events  pod.Events
}

// Plugin mounts local volumes.
type Plugin struct{ deps Deps }

// New returns the plugin.
func New(deps Deps) *Plugin { return &Plugin{deps} }

func (p *Plugin) Name() string { return Name }

func (p *Plugin) Handles(s plugin.Spec) bool { return s.PV != nil && s.PV.Spec.Local != nil }

var errWrongType = errors.New("only directory and block device are supported")

// isDisk reports whether path is a block device; it may be a directory otherwise.
func isDisk(path string) (bool, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("path %q does not exist", path)
	case err != nil:
		return false, err
	case info.IsDir():
		return false, nil
	case info.Mode()&fs.ModeDevice != 0 && info.Mode()&fs.ModeCharDevice == 0:
		return true, nil
	}
	return false, errWrongType
}

func checkPath(path string) error {
	if !filepath.IsAbs(path) || slices.Contains(strings.Split(path, "/"), "..") {
		return fmt.Errorf("invalid path: %s must be absolute and must not contain '..'", path)
	}
	return nil
}

// SetUp bind mounts the directory, or the file system of the disk, in the pod's directory.
func (p *Plugin) SetUp(_ context.Context, r plugin.Request) (plugin.Result, error) {
	source := r.PV.Spec.Local.Path
	if err := checkPath(source); err != nil {
		return plugin.Result{}, err
	}
	disk, err := isDisk(source)
	if err != nil {
		return plugin.Result{}, err
	}
	if disk {
		source = p.stagedAt(r.PV.Name)
	}
	dir := r.VolumeDir(Name)
	result := plugin.Result{HostPath: dir, ReadOnly: r.ClaimReadOnly, SELinuxRelabel: true}
	mounted, err := p.deps.Mounter.Mounted(dir)
	if err != nil || mounted {
		return result, err
	}
	shared, err := p.mountedByOther(r)
	if err != nil {
		return plugin.Result{}, err
	}
	if err := p.bind(r, source, dir); err != nil {
		return plugin.Result{}, err
	}
	if err := p.applyGroup(r, dir, shared); err != nil {
		// Without the group, the next call must not find it mounted.
		return plugin.Result{}, errors.Join(err, p.deps.Mounter.Unmount(dir))
	}
	return result, nil
}

func (p *Plugin) bind(r plugin.Request, source, dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("create volume directory: %w", err)
	}
	options := r.MountOptions()
	if r.ClaimReadOnly {
		options = append(slices.Clone(options), "ro")
	}
	if len(options) > 0 {
		return p.deps.Disks.Mount(source, dir, "", append([]string{"bind"}, options...))
	}
	f, err := os.OpenFile(source, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open volume: %w", err)
	}
	defer f.Close()
	return p.deps.Mounter.Bind(int(f.Fd()), dir)
}

// applyGroup changes the volume to the pod's fsGroup, unless another pod uses it: then the volume
// keeps its group, and an event reports a mismatch.
func (p *Plugin) applyGroup(r plugin.Request, dir string, shared bool) error {
	group := r.FSGroup()
	if group == nil || r.ClaimReadOnly {
		return nil
	}
	if !shared {
		return r.ChangeGroup(dir, ownership.Group{ID: *group, Policy: r.FSGroupPolicy()})
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return fmt.Errorf("read group of volume: %w", err)
	}
	if int64(st.Gid) != *group {
		p.deps.Events.Eventf(pod.EventRef(r.Pod, ""), v1.EventTypeWarning, "AlreadyMountedVolume",
			"The requested fsGroup is %d, but the volume %s has GID %d. The volume may not be shareable.", *group, r.Name(), st.Gid)
	}
	return nil
}

// mountedByOther reports whether another pod has the volume mounted.
func (p *Plugin) mountedByOther(r plugin.Request) (bool, error) {
	points, err := p.deps.Mounter.MountPoints(filepath.Dir(r.PodDir))
	if err != nil {
		return false, err
	}
	suffix := filepath.Join(plugin.VolumesDir, plugin.DirName(Name), r.Name())
	return slices.ContainsFunc(points, func(point string) bool { return strings.HasSuffix(point, "/"+suffix) }), nil
}

// MapDevice returns the disk.
func (p *Plugin) MapDevice(_ context.Context, r plugin.Request) (plugin.Result, error) {
	path := r.PV.Spec.Local.Path
	if err := checkPath(path); err != nil {
		return plugin.Result{}, err
	}
	disk, err := isDisk(path)
	if err == nil && !disk {
		err = fmt.Errorf("%s is not a block device", path)
	}
	return plugin.Result{HostPath: path, ReadOnly: r.ClaimReadOnly}, err
}

// MapDir has one bind mount of the raw block volume per pod.
func (p *Plugin) MapDir(name string) string {
	return filepath.Join(p.deps.RootDir, "plugins", Name, plugin.DevicesDir, name)
}

// mountsDir has the mount points of disks.
func (p *Plugin) mountsDir() string { return filepath.Join(p.deps.RootDir, "plugins", Name, "mounts") }

func (p *Plugin) stagedAt(id string) string { return filepath.Join(p.mountsDir(), id) }

// DeviceID is the volume's name if it is a disk with a file system.
func (p *Plugin) DeviceID(_ context.Context, s plugin.Spec) (string, error) {
	if s.Block() {
		return "", nil
	}
	disk, err := isDisk(s.PV.Spec.Local.Path)
	if err != nil || !disk {
		return "", err
	}
	return s.PV.Name, nil
}

// Stage mounts the disk.
func (p *Plugin) Stage(_ context.Context, r plugin.Request) error {
	local, dir := r.PV.Spec.Local, p.stagedAt(r.PV.Name)
	if err := checkPath(local.Path); err != nil {
		return err
	}
	mounted, err := p.deps.Mounter.Mounted(dir)
	if err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("create mount point of disk: %w", err)
	}
	kind := defaultFileSystem
	if local.FSType != nil {
		kind = *local.FSType
	}
	options := slices.Clone(r.MountOptions())
	if r.ClaimReadOnly {
		options = append(options, "ro")
	}
	if err := p.deps.Disks.FormatAndMount(local.Path, dir, kind, options); err != nil {
		return fmt.Errorf("local: failed to mount device %s at %s (fstype: %s), error %w", local.Path, dir, kind, err)
	}
	return nil
}

// DeviceOf is the volume's name if a disk of that name is mounted, even if it no longer responds.
func (p *Plugin) DeviceOf(published plugin.Published) (string, error) {
	if published.Block {
		return "", nil
	}
	if _, err := os.Lstat(p.stagedAt(published.Name)); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return published.Name, nil
}

// Staged lists the disks that are mounted.
func (p *Plugin) Staged() ([]string, error) {
	entries, err := os.ReadDir(p.mountsDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list mounted disks: %w", err)
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids, nil
}

// Unstage unmounts the disk.
func (p *Plugin) Unstage(_ context.Context, id string) error {
	dir := p.stagedAt(id)
	if err := p.deps.Mounter.Unmount(dir); err != nil {
		return err
	}
	if err := safepath.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove mount point of disk: %w", err)
	}
	return nil
}

// Expand grows the file system to the size of the disk. A directory has no size of its own.
func (p *Plugin) Expand(_ context.Context, r plugin.Request, at plugin.Result, _ resource.Quantity) error {
	if r.Block() {
		return nil
	}
	disk, err := isDisk(r.PV.Spec.Local.Path)
	if err != nil || !disk {
		return err
	}
	return p.deps.Disks.Resize(r.PV.Spec.Local.Path, at.HostPath)
}

// Measure is the usage of the volume's file system, which other volumes may share, or the size of
// the disk.
func (p *Plugin) Measure(_ context.Context, r plugin.Request, at plugin.Result) (pod.VolumeUsage, error) {
	if r.Block() {
		return mounts.DeviceSize(at.HostPath)
	}
	return mounts.FilesystemUsage(at.HostPath)
}
