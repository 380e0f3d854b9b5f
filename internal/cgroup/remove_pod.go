package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/backoff"
)

// RemovePod kills the processes left in the pod's cgroup, and removes it with all below it. It
// takes the UID, because the spec of an orphaned pod is unknown. A missing cgroup is no error. It
// fails when ctx is done.
func (t *Tree) RemovePod(ctx context.Context, uid types.UID) error {
	t.mu.Lock()
	delete(t.applied, uid)
	t.mu.Unlock()
	for _, class := range t.qosCgroups() {
		n := class.child(podPrefix + string(uid))
		dirs := t.existingDirs(n)
		if len(dirs) == 0 {
			continue
		}
		if err := t.remove(ctx, n, dirs); err != nil {
			return fmt.Errorf("remove the cgroup of pod %s: %w", uid, err)
		}
	}
	return nil
}

// existingDirs returns the directories of a cgroup that exist. After a kubelet was killed while
// it created or removed a cgroup, they may exist for some controllers only.
func (t *Tree) existingDirs(n cgroupName) []string { return t.hierarchy.existingDirs(n.path(t.driver)) }

func (h Hierarchy) existingDirs(path string) []string {
	var dirs []string
	seen := map[string]bool{} // v1 controllers may share a mount
	for _, dir := range h.dirs(path) {
		if !seen[dir] && exists(dir) {
			dirs = append(dirs, dir)
		}
		seen[dir] = true
	}
	return dirs
}

func (t *Tree) remove(ctx context.Context, n cgroupName, dirs []string) error {
	start := t.clock.Now()
	defer func() { t.duration.Took("destroy", t.clock.Since(start)) }()
	if err := RemoveAll(ctx, t.clock, dirs); err != nil {
		return err
	}
	return t.writer.stopUnit(n)
}

// RemoveAll removes the directories of a cgroup, one for each controller, with all below them. It
// kills the processes there, frozen ones too. It fails when ctx is done.
func RemoveAll(ctx context.Context, clock clock.Clock, dirs []string) error {
	// Usually all processes have exited, so try without killing first.
	var left []string
	for _, dir := range dirs {
		if err := removeTree(dir); err != nil {
			left = append(left, dir)
		}
	}
	if len(left) == 0 {
		return nil
	}
	if err := killProcesses(ctx, left); err != nil {
		return err
	}
	for _, dir := range left {
		if err := removeTreeRetrying(ctx, clock, dir); err != nil {
			return err
		}
	}
	return nil
}

// removeTree removes a cgroup directory and those below it, the deepest first.
func removeTree(dir string) error {
	err := unix.Rmdir(dir)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	entries, readErr := os.ReadDir(dir)
	if errors.Is(readErr, fs.ErrNotExist) {
		return nil
	}
	if readErr != nil {
		return readErr
	}
	children := false
	for _, e := range entries {
		if e.IsDir() {
			children = true
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if children {
		err = unix.Rmdir(dir)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return nil
}

// removeTreeRetrying retries while the kernel reports EBUSY: it releases a cgroup a moment after
// the last process has exited. v1 has no event for that.
func removeTreeRetrying(ctx context.Context, clock clock.Clock, dir string) error {
	retry := backoff.Backoff{First: 100 * time.Microsecond, Longest: 50 * time.Millisecond}
	for {
		err := removeTree(dir)
		if err == nil || !errors.Is(err, unix.EBUSY) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		case <-clock.After(retry.Next()):
		}
	}
}
