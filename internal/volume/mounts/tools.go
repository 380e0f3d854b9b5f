package mounts

import (
	"context"
	"fmt"
	"os/exec"
	"sync"

	"k8s.io/mount-utils"
	utilexec "k8s.io/utils/exec"

	"swiftlet/internal/clip"
	"swiftlet/internal/program"
)

// Tools mounts with the node's programs what needs more than a system call: file systems with a
// mount helper, and disks that may have to be formatted first.
type Tools struct {
	inScope func() bool // whether mount(8) runs in a systemd scope; nil means no
}

// NewTools returns Tools that find out on the first mount whether systemd runs the machine.
func NewTools() Tools { return Tools{inScope: sync.OnceValue(systemdRuns)} }

func (t Tools) mounter() mount.Interface {
	return toolMounter{mount.NewWithoutSystemd(""), t.inScope != nil && t.inScope()}
}

// FormatAndMount mounts a disk, and formats an empty one first.
func (t Tools) FormatAndMount(device, target, fileSystem string, options []string) error {
	for _, tool := range []string{"blkid", "fsck", "mkfs." + fileSystem, "mount"} {
		if err := t.Require(tool); err != nil {
			return err
		}
	}
	return clip.Error(mount.NewSafeFormatAndMount(t.mounter(), boundedExec{utilexec.New()}).FormatAndMount(device, target, fileSystem, options), clip.Message)
}

// Mount runs mount(8), in a systemd scope of its own if systemd runs the machine.
func (t Tools) Mount(source, target, fileSystem string, options []string) error {
	if err := t.Require("mount"); err != nil {
		return err
	}
	return clip.Error(t.mounter().Mount(source, target, fileSystem, options), clip.Message)
}

// Resize grows a mounted file system to the size of its disk.
func (Tools) Resize(device, mountedAt string) error {
	resizer := mount.NewResizeFs(boundedExec{utilexec.New()})
	need, err := resizer.NeedResize(device, mountedAt)
	if err != nil || !need {
		return err
	}
	_, err = resizer.Resize(device, mountedAt)
	return clip.Error(err, clip.Message)
}

// Require returns an error that names a program which is not installed.
func (Tools) Require(tool string) error {
	if _, err := exec.LookPath(tool); err != nil {
		return fmt.Errorf("the node has no program %q, which this volume needs: %w", tool, err)
	}
	return nil
}

// Run runs a program and returns its output. It returns when ctx is done, at the latest after two minutes.
func (t Tools) Run(ctx context.Context, tool string, args ...string) (string, error) {
	if err := t.Require(tool); err != nil {
		return "", err
	}
	out, err := program.Run(ctx, queryTimeout, tool, args...)
	return string(out), err
}
