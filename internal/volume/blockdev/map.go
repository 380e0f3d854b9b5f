// Package blockdev keeps raw block volumes where the reference kubelet keeps them: a link
// in the pod's folder for the runtime, and a bind mount outside of it that holds the device.
package blockdev

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Mounter is what a Map needs of the kernel.
type Mounter interface {
	Bind(fd int, target string) error
	Unmount(path string) error
	Mounted(path string) (bool, error)
}

// Map is one raw volume of one pod.
type Map struct {
	// Link leads the runtime to the device.
	Link string
	// Held is a bind mount of the device, and a loop device keeps it open: a device that
	// nobody has open could vanish, and another one take its name.
	Held string
}

// Make makes both ways to the device. What is there already is left alone.
func (m Map) Make(mounter Mounter, device string) error {
	device, err := filepath.EvalSymlinks(device)
	if err != nil {
		return fmt.Errorf("resolve device: %w", err)
	}
	if err := m.hold(mounter, device); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(m.Link), 0o750); err != nil {
		return fmt.Errorf("make folder of device links: %w", err)
	}
	if to, err := os.Readlink(m.Link); err == nil && to == device {
		return m.lock()
	}
	// A link from before a reboot may lead to another device.
	if err := os.Remove(m.Link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove old device link: %w", err)
	}
	if err := os.Symlink(device, m.Link); err != nil {
		return fmt.Errorf("link device: %w", err)
	}
	return m.lock()
}

func (m Map) hold(mounter Mounter, device string) error {
	source, err := os.OpenFile(device, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open device: %w", err)
	}
	defer source.Close()
	mounted, err := mounter.Mounted(m.Held)
	if err != nil {
		return err
	}
	if mounted {
		if sameDevice(source, m.Held) {
			return nil
		}
		if err := errors.Join(detachLoop(m.Held), mounter.Unmount(m.Held)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(m.Held), 0o750); err != nil {
		return fmt.Errorf("make folder of held devices: %w", err)
	}
	f, err := os.OpenFile(m.Held, os.O_CREATE|os.O_RDWR, 0o750)
	if err != nil {
		return fmt.Errorf("make mount point of device: %w", err)
	}
	f.Close()
	return mounter.Bind(int(source.Fd()), m.Held)
}

func (m Map) lock() error {
	if _, err := loopOf(m.Held); !errors.Is(err, errNoLoop) {
		return err
	}
	return attachLoop(m.Held)
}

// Remove takes both ways away again, and the folder of held devices with the last.
func (m Map) Remove(mounter Mounter) error {
	if err := detachLoop(m.Held); err != nil {
		return err
	}
	if err := os.Remove(m.Link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove device link: %w", err)
	}
	if err := mounter.Unmount(m.Held); err != nil {
		return err
	}
	if err := os.Remove(m.Held); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove mount point of device: %w", err)
	}
	_ = os.Remove(filepath.Dir(m.Held)) // stays while other pods hold the device
	return nil
}

func sameDevice(source *os.File, path string) bool {
	var a, b unix.Stat_t
	if unix.Fstat(int(source.Fd()), &a) != nil || unix.Lstat(path, &b) != nil {
		return false
	}
	return a.Mode&unix.S_IFMT == b.Mode&unix.S_IFMT && a.Rdev == b.Rdev && (a.Rdev != 0 || a.Ino == b.Ino && a.Dev == b.Dev)
}
