package fc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"swiftlet/internal/volume/plugin"
)

// Connect finds the disk, preferably its multipath device. If there is none, it scans all hosts once.
func (p *Plugin) Connect(_ context.Context, r plugin.Request) (string, error) {
	n, err := nameOf(source(r.Spec))
	if err != nil {
		return "", err
	}
	device, multipath, err := p.find(n)
	if err != nil || multipath {
		return device, err
	}
	if err := p.deps.Host.ScanAll(); err != nil {
		return "", fmt.Errorf("fc: scan for disks: %w", err)
	}
	if device, _, err = p.find(n); err == nil && device == "" {
		err = errors.New("no fc disk found")
	}
	return device, err
}

// find returns the device, and whether it is a multipath device.
func (p *Plugin) find(n name) (device string, multipath bool, err error) {
	disks, err := n.disks(p.deps.Host)
	if err != nil {
		return "", false, err
	}
	for _, disk := range disks {
		parent, err := p.deps.Host.Multipath(disk)
		if err != nil {
			return "", false, err
		}
		if parent != "" {
			return parent, true, nil
		}
		device = disk
	}
	return device, false, nil
}

// Staged lists the disks that are mounted or mapped.
func (p *Plugin) Staged() ([]string, error) {
	var ids []string
	for _, dir := range []string{"", plugin.DevicesDir} {
		entries, err := os.ReadDir(p.path(dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list fc disks: %w", err)
		}
		for _, e := range entries {
			if id := filepath.Join(dir, e.Name()); id != plugin.DevicesDir {
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}

// DeviceOf finds the disk by its mount; a raw one by the pod's bind mount.
func (p *Plugin) DeviceOf(v plugin.Published) (string, error) {
	if v.Block {
		mapDir, err := p.FindMapDir(v)
		if err != nil || mapDir == "" {
			return "", err
		}
		return filepath.Rel(p.dir(), mapDir)
	}
	mount, err := p.deps.Mounter.SameFilesystemMount(v.Dir(Name), p.dir())
	if err != nil || mount == "" {
		return "", err
	}
	// The mount table has resolved paths.
	dir, err := filepath.EvalSymlinks(p.dir())
	if err != nil {
		return "", fmt.Errorf("resolve directory of fc disks: %w", err)
	}
	return filepath.Rel(dir, mount)
}

// FindMapDir finds the directory with an entry of the pod for the device that the link points to.
func (p *Plugin) FindMapDir(v plugin.Published) (string, error) {
	// Before the device is mapped, the link points to its future bind mount.
	if to, err := os.Readlink(v.Dir(Name)); err == nil && filepath.Dir(filepath.Dir(to)) == p.path(plugin.DevicesDir) {
		return filepath.Dir(to), nil
	}
	found, err := filepath.Glob(p.path(filepath.Join(plugin.DevicesDir, "*", string(v.PodUID))))
	if err != nil {
		return "", fmt.Errorf("find raw fc disks: %w", err)
	}
	var want unix.Stat_t
	if err := unix.Stat(v.Dir(Name), &want); err != nil {
		if len(found) == 1 { // the device is gone, its bind mount is not
			return filepath.Dir(found[0]), nil
		}
		return "", nil
	}
	for _, path := range found {
		var have unix.Stat_t
		if unix.Stat(path, &have) == nil && have.Rdev == want.Rdev {
			return filepath.Dir(path), nil
		}
	}
	return "", nil
}

// MapDir has one bind mount of the raw block volume per pod.
func (p *Plugin) MapDir(volume string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.path(p.raw[volume])
}

// Unstage unmounts the disk and removes it from the kernel, with all paths to it.
func (p *Plugin) Unstage(ctx context.Context, id string) error {
	dir := p.path(id)
	raw := filepath.Dir(id) == plugin.DevicesDir
	// The directory of a raw disk is removed with its last entry.
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) && !raw {
		return nil
	}
	if err := p.deps.Mounter.Unmount(dir); err != nil {
		return fmt.Errorf("fc: failed to unmount: %s: %w", dir, err)
	}
	n, err := parseDirName(filepath.Base(id))
	if err != nil {
		return err
	}
	if !p.inOtherUse(id) {
		disks, err := n.disks(p.deps.Host)
		if err != nil {
			return err
		}
		if err := p.deps.Host.Release(ctx, disks...); err != nil {
			return fmt.Errorf("fc: failed to detach disk: %s: %w", dir, err)
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("fc: remove directory of disk: %w", err)
	}
	return nil
}

// inOtherUse reports whether a mounted disk is also in use as a raw one, or the reverse.
func (p *Plugin) inOtherUse(id string) bool {
	other := filepath.Join(plugin.DevicesDir, id)
	if raw, ok := strings.CutPrefix(id, plugin.DevicesDir+"/"); ok {
		other = raw
	}
	_, err := os.Lstat(p.path(other))
	return err == nil
}
