package dockerbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// hierarchy is a hierarchy of cgroup v1 with the box's cgroup in it.
type hierarchy struct {
	controllers string
	dir         string
}

// makeCgroups makes a cgroup in every v1 hierarchy. There are none on cgroup v2.
func makeCgroups(name string) ([]hierarchy, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("make cgroups: %w", err)
	}
	var made []hierarchy
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || parts[1] == "" {
			continue
		}
		parent := filepath.Join("/sys/fs/cgroup", strings.TrimPrefix(parts[1], "name="), parts[2])
		h := hierarchy{controllers: parts[1], dir: filepath.Join(parent, name)}
		if err := os.Mkdir(h.dir, 0o755); err != nil {
			return made, fmt.Errorf("make cgroups: %w", err)
		}
		made = append(made, h)
		if slices.Contains(strings.Split(h.controllers, ","), "cpuset") {
			if err := fillCpuset(parent, h.dir); err != nil {
				return made, err
			}
		}
	}
	return made, nil
}

// fillCpuset copies the parent's CPUs: a new cpuset has none, and accepts no process.
func fillCpuset(parent, child string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(child, file), value, 0o644)
		}
		if err != nil {
			return fmt.Errorf("fill cpuset: %w", err)
		}
	}
	return os.WriteFile(filepath.Join(child, "cgroup.clone_children"), []byte("1"), 0o644)
}

// removeCgroups removes a tree, deepest first. A cgroup stays busy for a moment after its last process.
func removeCgroups(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	slices.Reverse(dirs)
	for _, d := range dirs {
		removeErr := syscall.Rmdir(d)
		for deadline := time.Now().Add(10 * time.Second); removeErr == syscall.EBUSY && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
			removeErr = syscall.Rmdir(d)
		}
		if removeErr != nil && removeErr != syscall.ENOENT {
			err = errors.Join(err, fmt.Errorf("remove cgroup %s: %w", d, removeErr))
		}
	}
	return err
}
