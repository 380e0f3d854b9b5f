package iscsi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Unstage unmounts the disk, removes it from the kernel, and logs out of the target with its last
// disk.
func (p *Plugin) Unstage(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	dir := p.path(id)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := p.deps.Mounter.Unmount(dir); err != nil {
		return fmt.Errorf("iscsi: failed to detach disk: %s: %w", dir, err)
	}
	n, err := p.readInfo(dir)
	if err != nil {
		return err
	}
	defer p.targets.lock(n.Iqn)()
	others, err := p.others(n, id)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(others, func(o diskInfo) bool { return o.Lun == n.Lun }) {
		if err := p.deleteDisk(ctx, n); err != nil {
			return fmt.Errorf("iscsi: failed to detach disk: %s: %w", dir, err)
		}
	}
	// A session belongs to an interface.
	if !slices.ContainsFunc(others, func(o diskInfo) bool { return o.Portals[0] == n.Portals[0] && o.Iface == n.Iface }) {
		if err := p.logOut(ctx, n); err != nil {
			return fmt.Errorf("iscsi: failed to detach disk: %s: %w", dir, err)
		}
	}
	return remove(dir)
}

// deleteDisk removes the disk from the kernel, for all portals.
func (p *Plugin) deleteDisk(ctx context.Context, n diskInfo) error {
	lun, err := strconv.Atoi(n.Lun)
	if err != nil {
		return fmt.Errorf("lun is not a number: %w", err)
	}
	sessions, err := p.deps.Host.Sessions(n.Iqn)
	if err != nil {
		return err
	}
	var disks []string
	for _, s := range sessions {
		if !slices.ContainsFunc(s.Portals, func(portal string) bool { return slices.Contains(n.Portals, portal) }) {
			continue // not a session of this volume
		}
		disk, err := p.deps.Host.LUN(s, lun)
		if err != nil {
			return err
		}
		if disk != "" {
			disks = append(disks, disk)
		}
	}
	return p.deps.Host.Release(ctx, disks...)
}

// others are the other staged volumes of the target. They are parsed from the directory names: the
// disk info is hidden beneath the mount.
func (p *Plugin) others(n diskInfo, id string) ([]diskInfo, error) {
	ids, err := p.Staged()
	if err != nil {
		return nil, err
	}
	var all []diskInfo
	for _, other := range ids {
		o, err := parseDirName(p.path(other))
		if err != nil {
			continue // not a disk
		}
		if other != id && o.Iqn == n.Iqn {
			all = append(all, o)
		}
	}
	return all, nil
}

func (p *Plugin) logOut(ctx context.Context, n diskInfo) error {
	for _, portal := range slices.Compact(slices.Sorted(slices.Values(n.Portals))) {
		for _, step := range [][]string{{"--logout"}, {"-o", "delete"}} {
			args := append([]string{"-m", "node", "-p", portal, "-T", n.Iqn}, step...)
			if _, err := p.iscsiadm(ctx, append(args, "-I", n.Iface)...); err != nil && !exitedWith(err, codeNoSession, codeNoObjects) {
				return fmt.Errorf("iscsiadm %s: %w", strings.Join(args, " "), err)
			}
		}
	}
	if n.Iface != n.Portals[0]+":"+n.VolName {
		return nil // not created for this volume
	}
	return login{Plugin: p, diskInfo: n}.deleteInterface(ctx)
}
