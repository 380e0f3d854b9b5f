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

var errNoLoop = errors.New("no loop device is attached to it")

// loopOf finds the loop device that keeps path open.
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
		// One that is gone meanwhile is not ours: ours is attached and detached by its turn.
		if data, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(data)) == real {
			return filepath.Join("/dev", strings.Split(file, "/")[3]), nil
		}
	}
	return "", errNoLoop
}

// attachTries bounds the race for a free loop device with others on the machine.
const attachTries = 16

// attachLoop has a loop device keep path open.
func attachLoop(path string) error {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("keep device open: %w", err)
	}
	defer control.Close()
	source, err := openEither(path)
	if err != nil {
		return fmt.Errorf("keep device open: %w", err)
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
			return fmt.Errorf("keep device %s open: %w", path, err)
		}
		return nil
	}
}

// openEither opens for writing where the device allows it: only who may write may lock it
// for writers.
func openEither(path string) (*os.File, error) {
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

// detachLoop lets go of path; it is no error if nothing held it.
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
		return fmt.Errorf("let go of device: %w", err)
	}
	defer f.Close()
	if _, err := unix.IoctlRetInt(int(f.Fd()), unix.LOOP_CLR_FD); err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("let go of device %s: %w", path, err)
	}
	return nil
}
