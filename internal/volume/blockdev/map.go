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

// Announce makes a link before there is a device. The pod's folder is where others learn
// what a pod has: whatever happens from here on, the link tells them to undo it.
func (m Map) Announce() error {
	if _, err := os.Readlink(m.Link); err == nil {
		return nil
	}
	return m.link(m.Held)
}

// Make makes both ways to the device. What is there already is left alone.
func (m Map) Make(mounter Mounter, device string) error {
	device, err := filepath.EvalSymlinks(device)
	if err != nil {
		return fmt.Errorf("resolve device: %w", err)
	}
	// A link from before a reboot may lead to another device.
	if to, err := os.Readlink(m.Link); err != nil || to != device {
		if err := m.link(device); err != nil {
			return err
		}
	}
	if err := m.hold(mounter, device); err != nil {
		return err
	}
	return m.lock()
}

// link leads to a device, in place of another; there is no moment without a link.
func (m Map) link(device string) error {
	if err := os.MkdirAll(filepath.Dir(m.Link), 0o750); err != nil {
		return fmt.Errorf("make folder of device links: %w", err)
	}
	// Beside the folder, in which every link is taken for a volume.
	draft := filepath.Join(filepath.Dir(filepath.Dir(m.Link)), "."+filepath.Base(m.Link)+".new")
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove half a device link: %w", err)
	}
	if err := os.Symlink(device, draft); err != nil {
		return fmt.Errorf("link device: %w", err)
	}
	if err := os.Rename(draft, m.Link); err != nil {
		return fmt.Errorf("link device: %w", err)
	}
	return nil
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

// Release lets go of the device, and removes the folder of held devices with the last. The
// link stays: Unlink comes when nothing is left to undo. Held may be "": nothing is held.
func (m Map) Release(mounter Mounter) error {
	if m.Held == "" {
		return nil
	}
	if err := detachLoop(m.Held); err != nil {
		return err
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

// Unlink removes the link.
func (m Map) Unlink() error {
	if err := os.Remove(m.Link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove device link: %w", err)
	}
	return nil
}

func sameDevice(source *os.File, path string) bool {
	var a, b unix.Stat_t
	if unix.Fstat(int(source.Fd()), &a) != nil || unix.Lstat(path, &b) != nil {
		return false
	}
	return a.Mode&unix.S_IFMT == b.Mode&unix.S_IFMT && a.Rdev == b.Rdev && (a.Rdev != 0 || a.Ino == b.Ino && a.Dev == b.Dev)
}
