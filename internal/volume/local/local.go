// Package local brings up volumes that are a folder or a disk of this very node, described
// by a PersistentVolume. A disk is formatted if it is empty and mounted once for all pods.
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

// defaultFileSystem is what an empty disk gets where the volume does not say.
const defaultFileSystem = "ext4"

// Mounter is what the plugin needs of the kernel.
type Mounter interface {
	Bind(fd int, target string) error
	Mounted(path string) (bool, error)
	Unmount(path string) error
	Beneath(dir string) ([]string, error)
}

// Disks makes and mounts file systems with the node's own tools.
type Disks interface {
	// FormatAndMount mounts a disk, after making a file system on an empty one.
	FormatAndMount(device, target, fileSystem string, options []string) error
	// Mount mounts with options.
	Mount(source, target, fileSystem string, options []string) error
	// Resize has the mounted file system use all of the disk.
	Resize(device, mountedAt string) error
}

// Deps is what the plugin works with.
type Deps struct {
	RootDir string
	Mounter Mounter
	Disks   Disks
	Events  pod.Events
}

// Plugin brings up local volumes.
type Plugin struct{ deps Deps }

// New makes the plugin.
func New(deps Deps) *Plugin { return &Plugin{deps} }

func (p *Plugin) Name() string { return Name }

func (p *Plugin) Handles(s plugin.Spec) bool { return s.PV != nil && s.PV.Spec.Local != nil }

var errWrongType = errors.New("only directory and block device are supported")

// isDisk tells a disk from a folder.
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

// SetUp binds the folder, or the disk's file system, into the pod's folder.
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
	shared, err := p.sharedWith(r)
	if err != nil {
		return plugin.Result{}, err
	}
	if err := p.bind(r, source, dir); err != nil {
		return plugin.Result{}, err
	}
	if err := p.own(r, dir, shared); err != nil {
		// Mounted but not handed over: the next try must not take it for done.
		return plugin.Result{}, errors.Join(err, p.deps.Mounter.Unmount(dir))
	}
	return result, nil
}

func (p *Plugin) bind(r plugin.Request, source, dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make volume: %w", err)
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

// own hands the volume to the pod's group, unless other pods use it: it stays as the first
// one found it, and this one is told.
func (p *Plugin) own(r plugin.Request, dir string, shared bool) error {
	group := r.FSGroup()
	if group == nil || r.ClaimReadOnly {
		return nil
	}
	if !shared {
		return ownership.Apply(dir, ownership.Group{ID: *group, Policy: r.FSGroupPolicy()})
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return fmt.Errorf("look at volume's group: %w", err)
	}
	if int64(st.Gid) != *group {
		p.deps.Events.Eventf(pod.EventRef(r.Pod, ""), v1.EventTypeWarning, "AlreadyMountedVolume",
			"The requested fsGroup is %d, but the volume %s has GID %d. The volume may not be shareable.", *group, r.Name(), st.Gid)
	}
	return nil
}

// sharedWith reports whether another pod has the volume mounted.
func (p *Plugin) sharedWith(r plugin.Request) (bool, error) {
	points, err := p.deps.Mounter.Beneath(filepath.Dir(r.PodDir))
	if err != nil {
		return false, err
	}
	suffix := filepath.Join(plugin.VolumesDir, plugin.FolderName(Name), r.Name())
	return slices.ContainsFunc(points, func(point string) bool { return strings.HasSuffix(point, "/"+suffix) }), nil
}

// MapDevice names the disk.
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

// MapDir is where the raw volume is held for each pod.
func (p *Plugin) MapDir(name string) string {
	return filepath.Join(p.deps.RootDir, "plugins", Name, plugin.DevicesDir, name)
}

// mountsDir holds the file systems of disks.
func (p *Plugin) mountsDir() string { return filepath.Join(p.deps.RootDir, "plugins", Name, "mounts") }

func (p *Plugin) stagedAt(id string) string { return filepath.Join(p.mountsDir(), id) }

// DeviceID is the volume's name where it is a disk with a file system.
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
		return fmt.Errorf("make mount point of disk: %w", err)
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

// DeviceOf is the volume's name where a disk of that name is mounted, also one that answers no
// more.
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

// Expand has the file system use all of a disk that grew. A folder has no size of its own.
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

// Measure is how full the volume's file system is, which others may share, or how large its
// disk is.
func (p *Plugin) Measure(_ context.Context, r plugin.Request, at plugin.Result) (plugin.Usage, error) {
	if r.Block() {
		return mounts.DeviceSize(at.HostPath)
	}
	return mounts.Space(at.HostPath)
}
