package csi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swiftlet/internal/volume/plugin"
)

// Lookup of volumes in the mount table, for volume data that cannot be read.

// deviceByMount is the staged volume that the pod's volume is mounted from, "" if nothing is mounted
// for the pod. unreadable is the error of the volume data.
func (p *Plugin) deviceByMount(v plugin.Published, unreadable error) (string, error) {
	ids, mounted, err := p.devicesByMount(v)
	switch {
	case err != nil:
		return "", err
	case !mounted:
		return "", nil
	case len(ids) == 1:
		return ids[0], nil
	}
	return "", fmt.Errorf("find staged volume in mount table: %d match: %w", len(ids), unreadable)
}

// devicesByMount are the staged volumes on the same file system as the pod's mount.
func (p *Plugin) devicesByMount(v plugin.Published) (ids []string, mounted bool, err error) {
	target := filepath.Join(v.Dir(Name), mountDir)
	if mounted, err = p.deps.Mounts.Mounted(target); err != nil || !mounted {
		return nil, mounted, err
	}
	twins, err := p.deps.Mounts.SameFilesystemMounts(target, p.dir())
	if err != nil || len(twins) == 0 {
		return nil, true, err
	}
	// The mount table has resolved paths.
	dir, err := filepath.EvalSymlinks(p.dir())
	if err != nil {
		return nil, true, fmt.Errorf("resolve directory of CSI volumes: %w", err)
	}
	for _, twin := range twins {
		below, err := filepath.Rel(dir, twin)
		if err != nil {
			return nil, true, err
		}
		if parts := strings.Split(below, "/"); len(parts) == 3 && parts[2] == globalMountDir {
			ids = append(ids, deviceID(below))
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(ids))), true, nil
}

// MayUse reports whether the pod's volume may use the device. A driver need not mount what it stages:
// then any volume that is mounted for the pod may use it.
func (p *Plugin) MayUse(v plugin.Published, id string) (bool, error) {
	path, block, err := p.stagingPath(id)
	if err != nil || block || v.Block {
		return v.Block && id == rawID(v.Name), err
	}
	ids, mounted, err := p.devicesByMount(v)
	if err != nil || !mounted {
		return false, err
	}
	staged, err := p.deps.Mounts.Mounted(path)
	if err != nil || staged {
		return slices.Contains(ids, id), err
	}
	_, err = os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, err
}

// volumeDataByMount is the volume data of the staged volume that the pod's is mounted from.
func (p *Plugin) volumeDataByMount(v plugin.Published, unreadable error) (volumeData, bool) {
	id, err := p.deviceByMount(v, unreadable)
	if err != nil || id == "" {
		return volumeData{}, false
	}
	path, _, err := p.stagingPath(id)
	if err != nil {
		return volumeData{}, false
	}
	n, ok, err := p.readVolumeData(filepath.Dir(path))
	return n, ok && err == nil
}

// unmountWithoutDriver unmounts path without a call of the driver: without the volume data neither
// the driver nor the volume is known.
func (p *Plugin) unmountWithoutDriver(path string) error {
	p.deps.Log.Warn("csi: volume data unreadable, unmounting volume without its driver", "path", path)
	if err := p.deps.Mounts.UnmountBeneath(path); err != nil {
		return errorf("failed to unmount %s: %w", path, err)
	}
	return nil
}
