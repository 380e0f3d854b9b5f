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

// Connect finds the disk, best the device that joins all paths to it. If there is none, the
// hosts are told to look, once.
func (p *Plugin) Connect(_ context.Context, r plugin.Request) (string, error) {
	n, err := nameOf(source(r.Spec))
	if err != nil {
		return "", err
	}
	device, joined, err := p.find(n)
	if err != nil || joined {
		return device, err
	}
	if err := p.deps.Host.ScanAll(); err != nil {
		return "", fmt.Errorf("fc: look for disks: %w", err)
	}
	if device, _, err = p.find(n); err == nil && device == "" {
		err = errors.New("no fc disk found")
	}
	return device, err
}

// find returns the device, and whether it is one that joins paths.
func (p *Plugin) find(n name) (device string, joined bool, err error) {
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

// Staged lists the disks that are mounted or held.
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

// DeviceOf finds the disk by its mount; a raw one by what is held for the pod.
func (p *Plugin) DeviceOf(v plugin.Published) (string, error) {
	if v.Block {
		held, err := p.FindMapDir(v)
		if err != nil || held == "" {
			return "", err
		}
		return filepath.Rel(p.dir(), held)
	}
	twin, err := p.deps.Mounter.SameFilesystemMount(v.Dir(Name), p.dir())
	if err != nil || twin == "" {
		return "", err
	}
	// The mount table has no links in its paths.
	dir, err := filepath.EvalSymlinks(p.dir())
	if err != nil {
		return "", fmt.Errorf("resolve directory of fc disks: %w", err)
	}
	return filepath.Rel(dir, twin)
}

// FindMapDir finds by the disk what is held for the pod: the directory with an entry for it that
// is the same device as its link leads to.
func (p *Plugin) FindMapDir(v plugin.Published) (string, error) {
	// Half way, the link leads to where the device is to be held.
	if to, err := os.Readlink(v.Dir(Name)); err == nil && filepath.Dir(filepath.Dir(to)) == p.path(plugin.DevicesDir) {
		return filepath.Dir(to), nil
	}
	found, err := filepath.Glob(p.path(filepath.Join(plugin.DevicesDir, "*", string(v.PodUID))))
	if err != nil {
		return "", fmt.Errorf("look for raw fc disks: %w", err)
	}
	var want unix.Stat_t
	if err := unix.Stat(v.Dir(Name), &want); err != nil {
		if len(found) == 1 { // the device is gone, what held it is not
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

// MapDir is where the raw volume is held for each pod.
func (p *Plugin) MapDir(volume string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.path(p.raw[volume])
}

// Unstage unmounts the disk and has the kernel forget it, with all paths to it.
func (p *Plugin) Unstage(ctx context.Context, id string) error {
	dir := p.path(id)
	raw := filepath.Dir(id) == plugin.DevicesDir
	// The directory of a raw disk goes with the last pod's entry in it.
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) && !raw {
		return nil
	}
	if err := p.deps.Mounter.Unmount(dir); err != nil {
		return fmt.Errorf("fc: failed to unmount: %s: %w", dir, err)
	}
	n, err := byFolder(filepath.Base(id))
	if err != nil {
		return err
	}
	if !p.alsoAs(id) {
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

// alsoAs reports whether the disk is in use in the other way, too: mounted, or raw.
func (p *Plugin) alsoAs(id string) bool {
	other := filepath.Join(plugin.DevicesDir, id)
	if raw, ok := strings.CutPrefix(id, plugin.DevicesDir+"/"); ok {
		other = raw
	}
	_, err := os.Lstat(p.path(other))
	return err == nil
}
