// Package scsi finds and removes the SCSI disks of a storage network through /sys.
package scsi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Runner runs the node's programs.
type Runner interface {
	Run(ctx context.Context, program string, args ...string) (output string, err error)
}

// Host gives access to the node's /sys and /dev.
type Host struct {
	// Sys and Dev are /sys and /dev, except in tests.
	Sys, Dev string
	Runner   Runner
}

// Device is the path of a disk by its kernel name.
func (h Host) Device(name string) string { return filepath.Join(h.Dev, name) }

// name is the kernel name of the device at path.
func (h Host) name(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("resolve device: %w", err)
	}
	return filepath.Base(real), nil
}

// Multipath is the multipath device of the disk, "" if it has none.
func (h Host) Multipath(device string) (string, error) {
	name, err := h.name(device)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(name, "dm-") {
		return h.Device(name), nil
	}
	multipath, err := filepath.Glob(filepath.Join(h.Sys, "block/dm-*/slaves", name))
	if err != nil || len(multipath) == 0 {
		return "", err
	}
	return h.Device(filepath.Base(filepath.Dir(filepath.Dir(multipath[0])))), nil
}

// paths are the disks of a multipath device.
func (h Host) paths(multipath string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(h.Sys, "block", filepath.Base(multipath), "slaves"))
	if err != nil {
		return nil, fmt.Errorf("list paths of %s: %w", multipath, err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, h.Device(e.Name()))
	}
	return all, nil
}

// Release removes unused disks from the kernel, with their multipath devices.
func (h Host) Release(ctx context.Context, disks ...string) error {
	var multipath, all []string
	for _, disk := range disks {
		name, err := h.name(disk)
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone already
		}
		if err != nil {
			return err
		}
		all = append(all, h.Device(name))
		parent, err := h.Multipath(disk)
		if err != nil {
			return err
		}
		if parent == "" || slices.Contains(multipath, parent) {
			continue
		}
		multipath = append(multipath, parent)
		below, err := h.paths(parent)
		if err != nil {
			return err
		}
		all = append(all, below...)
	}
	for _, parent := range multipath {
		if out, err := h.Runner.Run(ctx, "multipath", "-f", parent); err != nil {
			return fmt.Errorf("flush multipath device %s: %w: %s", parent, err, strings.TrimSpace(out))
		}
	}
	slices.Sort(all)
	for _, disk := range slices.Compact(all) {
		if !slices.Contains(multipath, disk) {
			if err := h.deleteDisk(disk); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteDisk removes a SCSI disk from the kernel. It ignores other disks.
func (h Host) deleteDisk(disk string) error {
	err := writeSysfs(filepath.Join(h.Sys, "block", filepath.Base(disk), "device/delete"), "1")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Scan scans one host for one LUN: a scan for all would add disks that this node does not use.
func (h Host) Scan(host, lun int) error {
	return writeSysfs(filepath.Join(h.Sys, "class/scsi_host", fmt.Sprintf("host%d", host), "scan"), fmt.Sprintf("0 0 %d", lun))
}

// ScanAll scans all hosts for disks.
func (h Host) ScanAll() error {
	hosts, err := filepath.Glob(filepath.Join(h.Sys, "class/scsi_host/host*"))
	if err != nil {
		return err
	}
	for _, host := range hosts {
		if err := writeSysfs(filepath.Join(host, "scan"), "- - -"); err != nil {
			return err
		}
	}
	return nil
}

// writeSysfs writes to an existing file.
func writeSysfs(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("write to sysfs: %w", err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write to sysfs: %w", err)
	}
	return nil
}
