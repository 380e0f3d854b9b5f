package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/volume/ownership"
	"swiftlet/internal/volume/plugin"
)

// driver is one driver program, and the plugin of its volumes.
type driver struct {
	*Drivers
	name string

	mu sync.Mutex
	// initialized is the program that init was run for, nil for none.
	initialized os.FileInfo
	caps        capabilities
	// unsupported are commands that the driver does not support.
	unsupported map[string]bool
}

var (
	_ plugin.Plugin        = (*driver)(nil)
	_ plugin.Unpublisher   = (*driver)(nil)
	_ plugin.Stager        = (*driver)(nil)
	_ plugin.Attacher      = (*driver)(nil)
	_ plugin.Connector     = (*driver)(nil)
	_ plugin.Expander      = (*driver)(nil)
	_ plugin.UsageReporter = (*driver)(nil)
)

// Name is the driver's name: its volumes have a directory of their own.
func (d *driver) Name() string { return d.name }

func (d *driver) Handles(s plugin.Spec) bool { return DriverName(s) == d.name }

// SetUp calls the driver to mount the volume in the pod's directory.
func (d *driver) SetUp(ctx context.Context, r plugin.Request) (plugin.Result, error) {
	caps, err := d.initialize(ctx)
	if err != nil {
		return plugin.Result{}, err
	}
	dir, readOnly := r.VolumeDir(d.name), sourceOf(r.Spec).readOnly
	result := plugin.Result{HostPath: dir, ReadOnly: readOnly, SELinuxRelabel: caps.SELinuxRelabel}
	mounted, err := d.deps.Mounter.Mounted(dir)
	if err != nil || mounted {
		return result, err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return plugin.Result{}, fmt.Errorf("create volume directory: %w", err)
	}
	if err := d.mount(ctx, r, dir); err != nil {
		_ = os.Remove(dir) // fails if the driver left files in it
		return plugin.Result{}, err
	}
	if group := r.FSGroup(); group != nil && caps.FSGroup && !readOnly {
		if err := r.ChangeGroup(dir, ownership.Group{ID: *group, Policy: r.FSGroupPolicy()}); err != nil {
			// Without the group, the next call must not find it mounted.
			return plugin.Result{}, errors.Join(err, d.unmount(ctx, dir))
		}
	}
	return result, nil
}

// mount calls the driver, or bind mounts what is staged.
func (d *driver) mount(ctx context.Context, r plugin.Request, dir string) error {
	extra, err := d.podOptions(ctx, r)
	if err != nil {
		return err
	}
	_, err = d.call(ctx, "mount", dir, options(r.Spec, extra))
	if !errors.Is(err, errNotSupported) {
		return err
	}
	f, err := os.OpenFile(d.stagedAt(r.Name()), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open staging directory of FlexVolume driver %s: %w", d.name, err)
	}
	defer f.Close()
	return d.deps.Mounter.Bind(int(f.Fd()), dir)
}

// TearDown calls the driver to unmount the volume.
func (d *driver) TearDown(ctx context.Context, p plugin.Published) error {
	dir := p.Dir(d.name)
	if missing(dir) {
		return nil
	}
	if err := d.unmount(ctx, dir); err != nil {
		return err
	}
	// Files that the driver left in the directory are not deleted.
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove volume: %w", err)
	}
	return nil
}

func (d *driver) unmount(ctx context.Context, dir string) error {
	_, err := d.call(ctx, "unmount", dir)
	if errors.Is(err, errNotSupported) {
		return d.deps.Mounter.Unmount(dir)
	}
	return err
}

// missing reports whether path does not exist. A mount point whose server is gone exists.
func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// Measure is the usage of the volume's file system, if the driver supports metrics.
func (d *driver) Measure(ctx context.Context, _ plugin.Request, at plugin.Result) (pod.VolumeUsage, error) {
	caps, err := d.initialize(ctx)
	if err != nil {
		return pod.VolumeUsage{}, err
	}
	if !caps.SupportsMetrics {
		return pod.VolumeUsage{}, fmt.Errorf("FlexVolume driver %s does not support metrics", d.name)
	}
	return mounts.FilesystemUsage(at.HostPath)
}
