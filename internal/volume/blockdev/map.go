// Package blockdev maps raw block volumes as the reference kubelet does: a symbolic link in the
// pod's directory for the runtime, and a bind mount of the device outside of it.
package blockdev

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Mounter is the part of mounts.Kernel that a Map uses.
type Mounter interface {
	Bind(fd int, target string) error
	Unmount(path string) error
	Mounted(path string) (bool, error)
}

// Map is one raw block volume of one pod.
type Map struct {
	// Link is the symbolic link to the device.
	Link string
	// BindMount is a bind mount of the device. A loop device keeps it open: otherwise the device
	// could be removed and another one get its name.
	BindMount string
}

// CreateLink creates the link before the device exists. Volumes of a pod are found by what is in its
// directory: with the link, the volume is torn down whatever fails after it.
func (m Map) CreateLink() error {
	if _, err := os.Readlink(m.Link); err == nil {
		return nil
	}
	return m.link(m.BindMount)
}

// Create creates the link and the bind mount. It is idempotent.
func (m Map) Create(mounter Mounter, device string) error {
	device, err := filepath.EvalSymlinks(device)
	if err != nil {
		return fmt.Errorf("resolve device: %w", err)
	}
	// A link from before a reboot may point to another device.
	if to, err := os.Readlink(m.Link); err != nil || to != device {
		if err := m.link(device); err != nil {
			return err
		}
	}
	if err := m.bind(mounter, device); err != nil {
		return err
	}
	return m.ensureLoop()
}

// link creates the link, or replaces it atomically.
func (m Map) link(device string) error {
	if err := os.MkdirAll(filepath.Dir(m.Link), 0o750); err != nil {
		return fmt.Errorf("create directory of device links: %w", err)
	}
	// Outside of the directory, where every link is taken for a volume.
	temp := filepath.Join(filepath.Dir(filepath.Dir(m.Link)), "."+filepath.Base(m.Link)+".new")
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove temporary device link: %w", err)
	}
	if err := os.Symlink(device, temp); err != nil {
		return fmt.Errorf("link device: %w", err)
	}
	if err := os.Rename(temp, m.Link); err != nil {
		return fmt.Errorf("link device: %w", err)
	}
	return nil
}

func (m Map) bind(mounter Mounter, device string) error {
	source, err := os.OpenFile(device, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open device: %w", err)
	}
	defer source.Close()
	mounted, err := mounter.Mounted(m.BindMount)
	if err != nil {
		return err
	}
	if mounted {
		if sameDevice(source, m.BindMount) {
			return nil
		}
		if err := errors.Join(detachLoop(m.BindMount), mounter.Unmount(m.BindMount)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(m.BindMount), 0o750); err != nil {
		return fmt.Errorf("create directory of mapped devices: %w", err)
	}
	f, err := os.OpenFile(m.BindMount, os.O_CREATE|os.O_RDWR, 0o750)
	if err != nil {
		return fmt.Errorf("create mount point of device: %w", err)
	}
	f.Close()
	return mounter.Bind(int(source.Fd()), m.BindMount)
}

func (m Map) ensureLoop() error {
	if _, err := loopOf(m.BindMount); !errors.Is(err, errNoLoop) {
		return err
	}
	return attachLoop(m.BindMount)
}

// Release detaches the loop device and removes the bind mount, and its directory with the last one.
// The link stays until Unlink, when nothing else is left to undo. BindMount may be "" for none.
func (m Map) Release(mounter Mounter) error {
	if m.BindMount == "" {
		return nil
	}
	if err := detachLoop(m.BindMount); err != nil {
		return err
	}
	if err := mounter.Unmount(m.BindMount); err != nil {
		return err
	}
	if err := os.Remove(m.BindMount); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove mount point of device: %w", err)
	}
	_ = os.Remove(filepath.Dir(m.BindMount)) // fails while other pods use the device
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
