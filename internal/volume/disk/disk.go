// Package disk is what kinds of volumes on a disk have in common, however the disk came to
// the node: a file system that is mounted once and shown to every pod that uses it.
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

// defaultFileSystem is what an empty disk gets where the volume does not say.
const defaultFileSystem = "ext4"

// Mounter is what is needed of the kernel.
type Mounter interface {
	Bind(fd int, target string) error
	Mounted(path string) (bool, error)
	Unmount(path string) error
}

// Tools makes and mounts file systems with the node's own programs.
type Tools interface {
	FormatAndMount(device, target, fileSystem string, options []string) error
	Mount(source, target, fileSystem string, options []string) error
}

// Disks shows file systems on disks to pods.
type Disks struct {
	Mounter Mounter
	Tools   Tools
}

// Stage mounts the request's device at dir, formatted first if it is empty.
func (d Disks) Stage(r plugin.Request, dir, fileSystem string, readOnly bool) error {
	mounted, err := d.Mounter.Mounted(dir)
	if err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make mount point of disk: %w", err)
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

// Publish shows what is staged at from in the pod's folder dir, and gives it to the pod's
// group.
func (d Disks) Publish(r plugin.Request, from, dir string, readOnly bool) error {
	mounted, err := d.Mounter.Mounted(dir)
	if err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make volume: %w", err)
	}
	if err := d.bind(from, dir, mountOptions(r, readOnly)); err != nil {
		_ = os.Remove(dir) // an empty folder must not be taken for the volume
		return err
	}
	group := r.FSGroup()
	if group == nil || readOnly {
		return nil
	}
	if err := ownership.Apply(dir, ownership.Group{ID: *group, Policy: r.FSGroupPolicy()}); err != nil {
		// Mounted but not handed over: the next try must not take it for done.
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
