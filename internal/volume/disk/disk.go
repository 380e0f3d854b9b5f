// Package disk is shared by the kinds of volumes that are on a network disk: a file system that is
// mounted once and bind mounted for every pod that uses it.
package disk

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"swiftlet/internal/volume/ownership"
	"swiftlet/internal/volume/plugin"
)

// defaultFileSystem is the default fsType.
const defaultFileSystem = "ext4"

// Mounter is the part of mounts.Kernel that Disks uses.
type Mounter interface {
	Bind(fd int, target string) error
	Mounted(path string) (bool, error)
	Unmount(path string) error
}

// Tools formats and mounts file systems with the node's programs.
type Tools interface {
	FormatAndMount(device, target, fileSystem string, options []string) error
	Mount(source, target, fileSystem string, options []string) error
}

// Disks stages and publishes file systems on disks.
type Disks struct {
	Mounter Mounter
	Tools   Tools
}

// Stage mounts the request's device at dir, and formats an empty one first.
func (d Disks) Stage(r plugin.Request, dir, fileSystem string, readOnly bool) error {
	mounted, err := d.Mounter.Mounted(dir)
	if err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("create mount point of disk: %w", err)
	}
	if fileSystem == "" {
		fileSystem = defaultFileSystem
	}
	return d.Tools.FormatAndMount(r.DevicePath, dir, fileSystem, mountOptions(r, readOnly))
}

func mountOptions(r plugin.Request, readOnly bool) []string {
	options := slices.Clone(r.MountOptions())
	if readOnly && !slices.Contains(options, "ro") {
		options = append(options, "ro")
	}
	return options
}

// Publish bind mounts what is staged at from to dir in the pod's directory, and changes it to the
// pod's fsGroup.
func (d Disks) Publish(r plugin.Request, from, dir string, readOnly bool) error {
	mounted, err := d.Mounter.Mounted(dir)
	if err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("create volume directory: %w", err)
	}
	if err := d.bind(from, dir, mountOptions(r, readOnly)); err != nil {
		_ = os.Remove(dir) // the empty directory must not be mistaken for the volume
		return err
	}
	group := r.FSGroup()
	if group == nil || readOnly {
		return nil
	}
	if err := r.ChangeGroup(dir, ownership.Group{ID: *group, Policy: r.FSGroupPolicy()}); err != nil {
		// Without the group, the next call must not find it mounted.
		return errors.Join(err, d.Mounter.Unmount(dir))
	}
	return nil
}

func (d Disks) bind(from, dir string, options []string) error {
	if len(options) > 0 {
		return d.Tools.Mount(from, dir, "", append([]string{"bind"}, options...))
	}
	f, err := os.OpenFile(from, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open disk: %w", err)
	}
	defer f.Close()
	return d.Mounter.Bind(int(f.Fd()), dir)
}
