package standalone

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroupName is the group below which all pods live: beside, not among, those of another
// kubelet on the machine.
const cgroupName = "swiftlet"

// cgroupRoots lists the mounted hierarchies: one for cgroup v2, one per controller for v1.
func cgroupRoots() ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	// A mount that another one hides is still in the table.
	hidden := func(root string) bool { return !exists(filepath.Join(root, "cgroup.procs")) }
	return slices.DeleteFunc(cgroupMounts(string(mounts)), hidden), nil
}

func cgroupMounts(mountinfo string) []string {
	var roots []string
	for line := range strings.Lines(mountinfo) {
		before, after, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(kind) == 0 || (kind[0] != "cgroup" && kind[0] != "cgroup2") {
			continue
		}
		if strings.HasPrefix(fields[4], "/sys/fs/cgroup") && !slices.Contains(roots, fields[4]) {
			roots = append(roots, fields[4])
		}
	}
	return roots
}

// makeCgroups makes the group the agent is told to root its tree in. A v1 cpuset is
// useless until it is filled, and its children copy it only when told.
func makeCgroups() error {
	roots, err := cgroupRoots()
	if err != nil {
		return err
	}
	for _, root := range roots {
		dir := filepath.Join(root, cgroupName)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make the cgroup: %w", err)
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := inheritCpuset(root, dir, file); err != nil {
				return fmt.Errorf("make the cgroup: %w", err)
			}
		}
		// Delegating is what makes controllers appear in the group, on v2 alone; a
		// controller that cannot be had (an RT process runs, say) is the agent's to judge.
		if available, err := os.ReadFile(filepath.Join(root, "cgroup.controllers")); err == nil {
			for _, c := range strings.Fields(string(available)) {
				for _, d := range []string{root, dir} {
					_ = os.WriteFile(filepath.Join(d, "cgroup.subtree_control"), []byte("+"+c), 0o644)
				}
			}
		}
	}
	return nil
}

func inheritCpuset(parent, child, file string) error {
	if _, err := os.Stat(filepath.Join(parent, "cgroup.clone_children")); err != nil {
		return nil // v2 inherits by itself
	}
	value, err := os.ReadFile(filepath.Join(parent, file))
	if err != nil {
		return nil // not the cpuset hierarchy
	}
	return os.WriteFile(filepath.Join(child, file), value, 0o644)
}

// removeCgroups kills what is still in the group and removes it, the deepest part first.
func removeCgroups() error {
	roots, err := cgroupRoots()
	if err != nil {
		return err
	}
	var problems []error
	for _, root := range roots {
		top := filepath.Join(root, cgroupName)
		var dirs []string
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for _, dir := range slices.Backward(dirs) {
			if err := removeCgroup(dir); err != nil {
				problems = append(problems, fmt.Errorf("remove cgroup %s: %w", dir, err))
				break // its parents cannot go either
			}
		}
	}
	return errors.Join(problems...)
}

// removeCgroup retries for as long as killed processes take to leave.
func removeCgroup(dir string) error {
	var err error
	for range 100 {
		if err = os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		killCgroup(dir)
		pauseBriefly()
	}
	return err
}

func killCgroup(dir string) {
	list, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return
	}
	for _, field := range strings.Fields(string(list)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 && pid != os.Getpid() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}
