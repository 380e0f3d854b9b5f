package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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

// removeLogFiles removes a log and its rotated files. It removes nothing outside the pod log
// directory.
func (r *Runtime) removeLogFiles(path string) error {
	if path == "" || !isBelow(path, r.cfg.PodLogsDir) {
		return nil
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	base := filepath.Base(path)
	for _, f := range files {
		if f.Name() != base && !strings.HasPrefix(f.Name(), base+".") {
			continue
		}
		if err := remove(filepath.Join(filepath.Dir(path), f.Name())); err != nil {
			return err
		}
	}
	return nil
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
