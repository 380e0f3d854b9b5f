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

// This file has what the mount table tells of volumes whose notes cannot be read.

// deviceByMount names the one staged volume that the pod's is mounted from, "" where nothing
// is mounted for the pod. unreadable is why the note does not tell.
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

// devicesByMount names the staged volumes that are on the file system which is mounted for
// the pod, if one is.
func (p *Plugin) devicesByMount(v plugin.Published) (ids []string, mounted bool, err error) {
	target := filepath.Join(v.Dir(Name), mountDir)
	if mounted, err = p.deps.Mounts.Mounted(target); err != nil || !mounted {
		return nil, mounted, err
	}
	twins, err := p.deps.Mounts.SameFilesystemMounts(target, p.dir())
	if err != nil || len(twins) == 0 {
		return nil, true, err
	}
	// The mount table has no links in its paths.
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

// MayUse reports whether the pod's volume may be made from the device. A driver need not
// mount what it stages: then any volume that is mounted for the pod may be.
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

// noteByMount is the note of the staged volume that the pod's is mounted from.
func (p *Plugin) noteByMount(v plugin.Published, unreadable error) (note, bool) {
	id, err := p.deviceByMount(v, unreadable)
	if err != nil || id == "" {
		return note{}, false
	}
	path, _, err := p.stagingPath(id)
	if err != nil {
		return note{}, false
	}
	n, ok, err := p.readNote(filepath.Dir(path))
	return n, ok && err == nil
}

// unmountAlone takes away what a driver has mounted at path without asking it: without the
// note it is not known which driver, or which volume.
func (p *Plugin) unmountAlone(path string) error {
	p.deps.Log.Warn("unmounting volume without its driver", "path", path)
	if err := p.deps.Mounts.UnmountBeneath(path); err != nil {
		return said("failed to unmount %s: %w", path, err)
	}
	return nil
}
