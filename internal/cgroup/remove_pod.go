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

// RemovePod kills what is left in the pod's group, and removes the group and all below
// it. It needs the UID alone, for pods that nobody remembers. It is no error if there is
// nothing; it gives up when ctx is done.
func (t *Tree) RemovePod(ctx context.Context, uid types.UID) error {
	t.mu.Lock()
	delete(t.applied, uid)
	t.mu.Unlock()
	for _, class := range t.classes() {
		n := class.child(podPrefix + string(uid))
		dirs := t.present(n)
		if len(dirs) == 0 {
			continue
		}
		if err := t.remove(ctx, n, dirs); err != nil {
			return fmt.Errorf("remove the cgroup of pod %s: %w", uid, err)
		}
	}
	return nil
}

// present are those of the group's directories that exist. A group may be in some trees
// only, where its making or removing was cut short.
func (t *Tree) present(n name) []string { return t.hierarchy.present(n.path(t.driver)) }

func (h Hierarchy) present(path string) []string {
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

func (t *Tree) remove(ctx context.Context, n name, dirs []string) error {
	began := t.clock.Now()
	defer func() { t.took.Took("destroy", t.clock.Since(began)) }()
	if err := RemoveAll(ctx, t.clock, dirs); err != nil {
		return err
	}
	return t.writer.forget(n)
}

// RemoveAll removes the directories of a group, one for each tree, with all below it. What
// still runs there is killed, frozen or not. It gives up when ctx is done.
func RemoveAll(ctx context.Context, clock clock.Clock, dirs []string) error {
	// Nearly always all processes are gone and the directories empty, so try that first.
	var left []string
	for _, dir := range dirs {
		if err := removeTree(dir); err != nil {
			left = append(left, dir)
		}
	}
	if len(left) == 0 {
		return nil
	}
	if err := kill(ctx, left); err != nil {
		return err
	}
	for _, dir := range left {
		if err := removeBusy(ctx, clock, dir); err != nil {
			return err
		}
	}
	return nil
}

// removeTree removes a directory of groups, the deepest first.
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

// removeBusy is for the moment in which the processes have died and the kernel has not
// yet let go of their group. There is no event for the end of it on v1.
func removeBusy(ctx context.Context, clock clock.Clock, dir string) error {
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
