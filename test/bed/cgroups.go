package bed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hierarchy is a mounted cgroup v1 hierarchy, and the cgroup of this process in it.
type hierarchy struct {
	controllers string // as the kernel names them: "memory", "cpu,cpuacct", "name=systemd"
	dir         string
}

// readHierarchies lists the host's v1 hierarchies.
func readHierarchies() ([]hierarchy, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("read own cgroups: %w", err)
	}
	var found []hierarchy
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || parts[1] == "" {
			continue // "0::" is cgroup v2
		}
		mount := filepath.Join("/sys/fs/cgroup", strings.TrimPrefix(parts[1], "name="))
		found = append(found, hierarchy{controllers: parts[1], dir: filepath.Join(mount, parts[2])})
	}
	if len(found) == 0 {
		return nil, errors.New("read own cgroups: a box needs cgroup v1, which is not mounted")
	}
	return found, nil
}

// makeCgroups creates a cgroup for a box in every hierarchy, so that its "/kubepods" does not
// collide with another node's.
func makeCgroups(name string) ([]hierarchy, error) {
	parents, err := readHierarchies()
	if err != nil {
		return nil, err
	}
	var made []hierarchy
	for _, parent := range parents {
		h := hierarchy{controllers: parent.controllers, dir: filepath.Join(parent.dir, name)}
		if err := os.Mkdir(h.dir, 0o755); err != nil {
			return made, fmt.Errorf("make cgroup: %w", err)
		}
		made = append(made, h)
		if slices.Contains(strings.Split(h.controllers, ","), "cpuset") {
			if err := fillCpuset(parent.dir, h.dir); err != nil {
				return made, err
			}
		}
	}
	return made, nil
}

// fillCpuset copies the parent's cpuset: a new one is empty and accepts no process.
func fillCpuset(parent, child string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := readFile(filepath.Join(parent, file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(child, file), value, 0o644); err != nil {
			return fmt.Errorf("fill cpuset: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(child, "cgroup.clone_children"), []byte("1"), 0o644); err != nil {
		return fmt.Errorf("fill cpuset: %w", err)
	}
	return nil
}

// removeCgroups removes a tree of cgroups without processes, deepest first. It retries: a cgroup
// stays busy for a moment after its last process has exited.
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
	if err != nil {
		return fmt.Errorf("remove cgroup: %w", err)
	}
	slices.Reverse(dirs) // parents were listed before their children
	deadline := time.Now().Add(5 * time.Second)
	for _, d := range dirs {
		err := unix.Rmdir(d)
		for errors.Is(err, unix.EBUSY) && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
			err = unix.Rmdir(d)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove cgroup %s: %w", d, err)
		}
	}
	return nil
}
