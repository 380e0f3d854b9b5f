package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/volume/plugin"
)

// defaultFileSystem is the default fsType.
const defaultFileSystem = "ext4"

// mountsDir has the staged volumes of the driver.
func (d *driver) mountsDir() string {
	return filepath.Join(d.cfg.RootDir, "plugins", dirName, d.name, "mounts")
}

func (d *driver) stagedAt(id string) string { return filepath.Join(d.mountsDir(), id) }

// DeviceID is the volume's name if the driver attaches volumes; others are not staged.
func (d *driver) DeviceID(ctx context.Context, s plugin.Spec) (string, error) {
	caps, err := d.initialize(ctx)
	if err != nil || !caps.Attach {
		return "", err
	}
	return s.Name(), nil
}

// AttachName is the volume's name in the node's status.
func (d *driver) AttachName(ctx context.Context, s plugin.Spec) (v1.UniqueVolumeName, error) {
	caps, err := d.initialize(ctx)
	if err != nil || !caps.Attach {
		return "", err
	}
	return v1.UniqueVolumeName(d.name + "/" + s.Name()), nil
}

// Attached relies on the node's status.
func (d *driver) Attached(context.Context, plugin.Request) error { return nil }

// Connect attaches the volume if no controller does, and waits for its device.
func (d *driver) Connect(ctx context.Context, r plugin.Request) (string, error) {
	device := r.DevicePath
	if d.cfg.NodeAttaches {
		// The directory marks the volume for detach.
		if err := os.MkdirAll(d.stagedAt(r.Name()), 0o750); err != nil {
			return "", fmt.Errorf("create mount point of device: %w", err)
		}
		resp, err := d.call(ctx, "attach", options(r.Spec, nil), d.cfg.NodeName)
		if err != nil && !errors.Is(err, errNotSupported) {
			return "", err
		}
		device = resp.Device
	}
	resp, err := d.call(ctx, "waitforattach", device, options(r.Spec, nil))
	if errors.Is(err, errNotSupported) {
		return device, nil
	}
	return resp.Device, err
}

// Stage calls the driver to mount the device for all pods of the node.
func (d *driver) Stage(ctx context.Context, r plugin.Request) error {
	dir := d.stagedAt(r.Name())
	mounted, err := d.deps.Mounter.Mounted(dir)
	if err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("create mount point of device: %w", err)
	}
	_, err = d.call(ctx, "mountdevice", dir, r.DevicePath, options(r.Spec, nil))
	if !errors.Is(err, errNotSupported) {
		return err
	}
	if r.DevicePath == "" {
		return nil // the driver mounts for each pod
	}
	from, mode := sourceOf(r.Spec), "rw"
	if from.readOnly {
		mode = "ro"
	}
	if from.fsType == "" {
		from.fsType = defaultFileSystem
	}
	return d.deps.Disks.FormatAndMount(r.DevicePath, dir, from.fsType, []string{mode})
}

// DeviceOf is the volume's name if it is staged.
func (d *driver) DeviceOf(p plugin.Published) (string, error) {
	if p.Block || missing(d.stagedAt(p.Name)) {
		return "", nil
	}
	return p.Name, nil
}

// Staged lists the staged volumes of the driver.
func (d *driver) Staged() ([]string, error) {
	entries, err := os.ReadDir(d.mountsDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list staged volumes of FlexVolume driver %s: %w", d.name, err)
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids, nil
}

// Unstage calls the driver to undo Stage and, if no controller does, to detach.
func (d *driver) Unstage(ctx context.Context, id string) error {
	dir := d.stagedAt(id)
	if missing(dir) {
		return nil
	}
	mounted, err := d.deps.Mounter.Mounted(dir)
	if err != nil {
		return err
	}
	if mounted {
		_, err := d.call(ctx, "unmountdevice", dir)
		if errors.Is(err, errNotSupported) {
			err = d.deps.Mounter.Unmount(dir)
		}
		if err != nil {
			return err
		}
	}
	if d.cfg.NodeAttaches {
		if _, err := d.call(ctx, "detach", id, d.cfg.NodeName); err != nil && !errors.Is(err, errNotSupported) {
			return err
		}
	}
	// Last, so that a failed detach is retried.
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove mount point of device: %w", err)
	}
	return nil
}

// Expand resizes the file system with the driver or, if it does not support that, the node's programs.
func (d *driver) Expand(ctx context.Context, r plugin.Request, _ plugin.Result, size resource.Quantity) error {
	caps, err := d.initialize(ctx)
	if err != nil || !caps.RequiresFSResize {
		return err
	}
	dir := d.stagedAt(r.Name())
	if missing(dir) {
		dir = ""
	}
	old := r.PVC.Status.Capacity.Storage().Value()
	_, err = d.call(ctx, "expandfs", options(r.Spec, nil), r.DevicePath, dir,
		strconv.FormatInt(size.Value(), 10), strconv.FormatInt(old, 10))
	if !errors.Is(err, errNotSupported) {
		return err
	}
	if r.DevicePath == "" || dir == "" {
		return fmt.Errorf("FlexVolume driver %s does not support expandfs, and there is no device to resize", d.name)
	}
	return d.deps.Disks.Resize(r.DevicePath, dir)
}
