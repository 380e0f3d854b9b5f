package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"swiftlet/internal/filetree"
	"swiftlet/internal/pod"
)

// removeContainer removes a container that has exited, with its logs, the link to them and its
// termination log. It removes files first: as long as the runtime lists the container, the
// removal is retried.
func (r *Runtime) removeContainer(ctx context.Context, ref pod.Ref, c *pod.Container) error {
	if err := r.removeLogFiles(c.LogPath); err != nil {
		return fmt.Errorf("remove logs of container %s: %w", c.ID, err)
	}
	if err := remove(r.logLink(ref, c.Name, c.ID)); err != nil {
		return fmt.Errorf("remove link to log of container %s: %w", c.ID, err)
	}
	own := r.containerDir(string(ref.UID), c.Name)
	for _, m := range c.Mounts {
		if filepath.Dir(m.HostPath) != own {
			continue
		}
		if err := remove(m.HostPath); err != nil {
			return fmt.Errorf("remove termination log of container %s: %w", c.ID, err)
		}
	}
	return r.deps.CRI.RemoveContainer(ctx, c.ID)
}

// removeLogFiles removes a log and its rotated files. It removes nothing outside the pod log directory: a pod that
// mounts that directory may put a link in place of any other below it.
func (r *Runtime) removeLogFiles(path string) error {
	if path == "" || !isBelow(path, r.cfg.PodLogsDir) {
		return nil
	}
	dir, err := r.openBelowPodLogs(filepath.Dir(path))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return nil // no log of the runtime's
	case err != nil:
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	base := filepath.Base(path)
	for _, name := range names {
		if name != base && !strings.HasPrefix(name, base+".") {
			continue
		}
		// A directory is not the runtime's; it is removed with the pod.
		if err := unix.Unlinkat(int(dir.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EISDIR) {
			return &os.PathError{Op: "remove", Path: filepath.Join(dir.Name(), name), Err: err}
		}
	}
	return nil
}

// openBelowPodLogs opens a directory below that of all logs, and follows no link on the way.
func (r *Runtime) openBelowPodLogs(dir string) (*os.File, error) {
	top, err := os.Open(r.cfg.PodLogsDir)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	below, err := filepath.Rel(r.cfg.PodLogsDir, dir)
	if err != nil {
		return nil, err
	}
	fd, err := filetree.OpenAt(int(top.Fd()), below, unix.O_RDONLY|unix.O_DIRECTORY, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return os.NewFile(uintptr(fd), dir), nil
}

func isBelow(path, dir string) bool {
	relative, err := filepath.Rel(dir, path)
	return err == nil && relative != "." && filepath.IsLocal(relative)
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}
