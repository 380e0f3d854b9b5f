package blockdev

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

var errNoLoop = errors.New("no loop device is attached")

// loopOf finds the loop device that is attached to path.
func loopOf(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errNoLoop
	}
	if err != nil {
		return "", fmt.Errorf("find loop device: %w", err)
	}
	backing, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return "", fmt.Errorf("find loop device: %w", err)
	}
	for _, file := range backing {
		// Operations on path are serialized, so a loop device that vanishes is another one's.
		if data, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(data)) == real {
			return filepath.Join("/dev", strings.Split(file, "/")[3]), nil
		}
	}
	return "", errNoLoop
}

// attachTries bounds the retries when another process takes the free loop device.
const attachTries = 16

// attachLoop attaches a loop device to path, which keeps the device open.
func attachLoop(path string) error {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("attach loop device: %w", err)
	}
	defer control.Close()
	source, err := openWritable(path)
	if err != nil {
		return fmt.Errorf("attach loop device: %w", err)
	}
	defer source.Close()
	for try := 1; ; try++ {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return fmt.Errorf("find free loop device: %w", err)
		}
		err = configure(fmt.Sprintf("/dev/loop%d", number), source)
		if errors.Is(err, unix.EBUSY) && try < attachTries {
			continue
		}
		if err != nil {
			return fmt.Errorf("attach loop device to %s: %w", path, err)
		}
		return nil
	}
}

// openWritable opens the device for writing if it allows that, else read-only.
func openWritable(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return os.OpenFile(path, os.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	return f, err
}

func configure(loop string, source *os.File) error {
	f, err := os.OpenFile(loop, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	config := unix.LoopConfig{Fd: uint32(source.Fd())}
	copy(config.Info.File_name[:len(config.Info.File_name)-1], source.Name())
	return unix.IoctlLoopConfigure(int(f.Fd()), &config)
}

// detachLoop detaches the loop device from path. It is not an error if there is none.
func detachLoop(path string) error {
	loop, err := loopOf(path)
	if errors.Is(err, errNoLoop) {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := os.OpenFile(loop, os.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("detach loop device: %w", err)
	}
	defer f.Close()
	if _, err := unix.IoctlRetInt(int(f.Fd()), unix.LOOP_CLR_FD); err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("detach loop device from %s: %w", path, err)
	}
	return nil
}
