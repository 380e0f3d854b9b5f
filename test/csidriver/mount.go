package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// runTool runs a program and returns its output.
func runTool(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return strings.TrimSpace(string(out)), nil
}

// mounted reports whether something is mounted at path.
func mounted(path string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// bind bind-mounts source at target, if nothing is mounted there.
func bind(source, target string, readOnly bool) error {
	if mounted(target) {
		return nil
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s at %s: %w", source, target, err)
	}
	if !readOnly {
		return nil
	}
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return errors.Join(fmt.Errorf("make %s read-only: %w", target, err), unix.Unmount(target, 0))
	}
	return nil
}

// unmount unmounts everything at path.
func unmount(path string) error {
	for mounted(path) {
		if err := unix.Unmount(path, 0); err != nil {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
	return nil
}

// makeImage creates the volume's disk image, or extends it to the volume's capacity.
func (v *volume) makeImage() error {
	f, err := os.OpenFile(v.image(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() >= v.Capacity {
		return err
	}
	return f.Truncate(v.Capacity)
}

// loopDevice is the loop device of the volume's disk image, "" if there is none.
func (v *volume) loopDevice() (string, error) {
	all, err := v.loopDevices()
	if err != nil || len(all) == 0 {
		return "", err
	}
	return all[0], nil
}

// loopDevices may return several devices: the losetup of a killed driver may still be running when
// the next driver calls losetup.
func (v *volume) loopDevices() ([]string, error) {
	out, err := runTool("losetup", "-n", "-O", "NAME", "-j", v.image())
	return strings.Fields(out), err
}

// mountImage mounts the disk image and formats it first if needed. The kernel removes the loop
// device with the last mount.
func (v *volume) mountImage(target, fsType string, flags []string) error {
	if mounted(target) {
		return nil
	}
	if err := v.makeImage(); err != nil {
		return err
	}
	if made, _ := exec.Command("blkid", "-p", "-o", "value", "-s", "TYPE", v.image()).Output(); len(made) == 0 {
		if _, err := runTool("mkfs."+fsType, "-q", v.image()); err != nil {
			return err
		}
	}
	_, err := runTool("mount", "-t", fsType, "-o", strings.Join(append([]string{"loop"}, flags...), ","), v.image(), target)
	return err
}

// attachImage attaches the disk image to a loop device.
func (v *volume) attachImage() (string, error) {
	if err := v.makeImage(); err != nil {
		return "", err
	}
	device, err := v.loopDevice()
	if err != nil || device != "" {
		return device, err
	}
	return runTool("losetup", "--show", "-f", v.image())
}

// detachImage undoes attachImage.
func (v *volume) detachImage() error {
	all, err := v.loopDevices()
	if err != nil {
		return err
	}
	for _, device := range all {
		if _, err := runTool("losetup", "-d", device); err != nil {
			return err
		}
	}
	return nil
}

// publishDevice bind-mounts a device at target, a file.
func publishDevice(device, target string, readOnly bool) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(target, os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	f.Close()
	return bind(device, target, readOnly)
}
