// Package scsi finds the disks that a node reaches over a network of storage, and lets go of
// them, by what the kernel shows in /sys.
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

// Host is the node as the kernel shows it.
type Host struct {
	// Sys and Dev are /sys and /dev, but for tests.
	Sys, Dev string
	Runner   Runner
}

// Device is the path of a disk by its kernel name.
func (h Host) Device(name string) string { return filepath.Join(h.Dev, name) }

// name is the kernel's for what path leads to.
func (h Host) name(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("resolve device: %w", err)
	}
	return filepath.Base(real), nil
}

// Multipath is the device that joins all paths to the disk, "" where there is none.
func (h Host) Multipath(device string) (string, error) {
	name, err := h.name(device)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(name, "dm-") {
		return h.Device(name), nil
	}
	joined, err := filepath.Glob(filepath.Join(h.Sys, "block/dm-*/slaves", name))
	if err != nil || len(joined) == 0 {
		return "", err
	}
	return h.Device(filepath.Base(filepath.Dir(filepath.Dir(joined[0])))), nil
}

// paths are the disks that a multipath device joins.
func (h Host) paths(joined string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(h.Sys, "block", filepath.Base(joined), "slaves"))
	if err != nil {
		return nil, fmt.Errorf("list the paths of %s: %w", joined, err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, h.Device(e.Name()))
	}
	return all, nil
}

// Release has the kernel forget disks that nobody uses any more, and what joins them.
func (h Host) Release(ctx context.Context, disks ...string) error {
	var joined, all []string
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
		if parent == "" || slices.Contains(joined, parent) {
			continue
		}
		joined = append(joined, parent)
		below, err := h.paths(parent)
		if err != nil {
			return err
		}
		all = append(all, below...)
	}
	for _, parent := range joined {
		if out, err := h.Runner.Run(ctx, "multipath", "-f", parent); err != nil {
			return fmt.Errorf("flush multipath device %s: %w: %s", parent, err, strings.TrimSpace(out))
		}
	}
	slices.Sort(all)
	for _, disk := range slices.Compact(all) {
		if !slices.Contains(joined, disk) {
			if err := h.forget(disk); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget has the kernel drop one disk; one that is no SCSI disk it leaves alone.
func (h Host) forget(disk string) error {
	err := write(filepath.Join(h.Sys, "block", filepath.Base(disk), "device/delete"), "1")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Scan has one host look for one LUN alone: a scan of all would bring disks to the node that
// are none of its business.
func (h Host) Scan(host, lun int) error {
	return write(filepath.Join(h.Sys, "class/scsi_host", fmt.Sprintf("host%d", host), "scan"), fmt.Sprintf("0 0 %d", lun))
}

// ScanAll has every host look for disks.
func (h Host) ScanAll() error {
	hosts, err := filepath.Glob(filepath.Join(h.Sys, "class/scsi_host/host*"))
	if err != nil {
		return err
	}
	for _, host := range hosts {
		if err := write(filepath.Join(host, "scan"), "- - -"); err != nil {
			return err
		}
	}
	return nil
}

// write tells the kernel something. It makes no file: what is not there cannot be told.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("tell the kernel: %w", err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("tell the kernel: %w", err)
	}
	return nil
}
