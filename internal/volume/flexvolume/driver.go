package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/volume/ownership"
	"swiftlet/internal/volume/plugin"
)

// driver is one program, and the kind of volumes that it brings up.
type driver struct {
	*Drivers
	name string

	mu sync.Mutex
	// seen is the program that was asked what it can do, nil for none yet.
	seen os.FileInfo
	able capabilities
	// declined are commands that the driver leaves to us.
	declined map[string]bool
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

// Name is the driver's: its volumes have a directory of their own.
func (d *driver) Name() string { return d.name }

func (d *driver) Handles(s plugin.Spec) bool { return DriverName(s) == d.name }

// SetUp has the driver mount the volume in the pod's directory.
func (d *driver) SetUp(ctx context.Context, r plugin.Request) (plugin.Result, error) {
	able, err := d.ready(ctx)
	if err != nil {
		return plugin.Result{}, err
	}
	dir, readOnly := r.VolumeDir(d.name), sourceOf(r.Spec).readOnly
	result := plugin.Result{HostPath: dir, ReadOnly: readOnly, SELinuxRelabel: able.SELinuxRelabel}
	mounted, err := d.deps.Mounter.Mounted(dir)
	if err != nil || mounted {
		return result, err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return plugin.Result{}, fmt.Errorf("make volume: %w", err)
	}
	if err := d.mount(ctx, r, dir); err != nil {
		_ = os.Remove(dir) // stays if the driver left something in it
		return plugin.Result{}, err
	}
	if group := r.FSGroup(); group != nil && able.FSGroup && !readOnly {
		if err := ownership.Apply(dir, ownership.Group{ID: *group, Policy: r.FSGroupPolicy()}); err != nil {
			// Mounted but not handed over: the next try must not take it for done.
			return plugin.Result{}, errors.Join(err, d.unmount(ctx, dir))
		}
	}
	return result, nil
}

// mount calls the driver, or shows the pod what is staged.
func (d *driver) mount(ctx context.Context, r plugin.Request, dir string) error {
	extra, err := d.ofPod(ctx, r)
	if err != nil {
		return err
	}
	_, err = d.call(ctx, "mount", dir, options(r.Spec, extra))
	if !errors.Is(err, errNotSupported) {
		return err
	}
	f, err := os.OpenFile(d.stagedAt(r.Name()), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open what FlexVolume driver %s staged: %w", d.name, err)
	}
	defer f.Close()
	return d.deps.Mounter.Bind(int(f.Fd()), dir)
}

// TearDown has the driver undo SetUp.
func (d *driver) TearDown(ctx context.Context, p plugin.Published) error {
	dir := p.Dir(d.name)
	if gone(dir) {
		return nil
	}
	if err := d.unmount(ctx, dir); err != nil {
		return err
	}
	// What the driver left in the directory is its own; it is not ours to delete.
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

// gone says that there is nothing at path. A mount whose server is gone is something.
func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// Measure is how full the volume's file system is, where the driver says that this tells.
func (d *driver) Measure(ctx context.Context, _ plugin.Request, at plugin.Result) (plugin.Usage, error) {
	able, err := d.ready(ctx)
	if err != nil {
		return plugin.Usage{}, err
	}
	if !able.SupportsMetrics {
		return plugin.Usage{}, fmt.Errorf("FlexVolume driver %s has no figures of its volumes", d.name)
	}
	return mounts.FilesystemUsage(at.HostPath)
}
