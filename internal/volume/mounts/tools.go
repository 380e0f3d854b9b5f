package mounts

import (
	"context"
	"fmt"
	"os/exec"

	"k8s.io/mount-utils"
	utilexec "k8s.io/utils/exec"
)

// Tools mounts what a system call alone cannot: file systems that need a helper of their
// own, and disks that may have to be formatted first. It runs the node's programs.
type Tools struct{}

// FormatAndMount mounts a disk, after making a file system on an empty one.
func (t Tools) FormatAndMount(device, target, fileSystem string, options []string) error {
	for _, tool := range []string{"blkid", "fsck", "mkfs." + fileSystem, "mount"} {
		if err := t.Need(tool); err != nil {
			return err
		}
	}
	return mount.NewSafeFormatAndMount(mount.NewWithoutSystemd(""), utilexec.New()).FormatAndMount(device, target, fileSystem, options)
}

// Mount runs mount(8).
func (t Tools) Mount(source, target, fileSystem string, options []string) error {
	if err := t.Need("mount"); err != nil {
		return err
	}
	return mount.NewWithoutSystemd("").Mount(source, target, fileSystem, options)
}

// Resize has a mounted file system use all of its disk.
func (Tools) Resize(device, mountedAt string) error {
	resizer := mount.NewResizeFs(utilexec.New())
	need, err := resizer.NeedResize(device, mountedAt)
	if err != nil || !need {
		return err
	}
	_, err = resizer.Resize(device, mountedAt)
	return err
}

// Need returns an error that names a program the node lacks.
func (Tools) Need(tool string) error {
	if _, err := exec.LookPath(tool); err != nil {
		return fmt.Errorf("the node has no program %q, which this volume needs: %w", tool, err)
	}
	return nil
}

// Run runs a program and returns all that it wrote.
func (t Tools) Run(ctx context.Context, program string, args ...string) (string, error) {
	if err := t.Need(program); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	return string(out), err
}
