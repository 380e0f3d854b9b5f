package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
)

// MoveProcesses creates a cgroup outside of kubepods and moves processes into it. Where one cannot
// be moved, it continues with the others.
func (t *Tree) MoveProcesses(group string, pids ...int) error {
	n := parsePath(group) // not a slice even with the systemd driver
	if err := (cgroupfsWriter{t.hierarchy}).create(n, Resources{Hugepages: t.unlimitedHugepages()}); err != nil {
		return fmt.Errorf("move processes to cgroup: %w", err)
	}
	var errs []error
	for _, dir := range t.hierarchy.existingDirs(n.path(Cgroupfs)) {
		for _, pid := range pids {
			if err := os.WriteFile(path.Join(dir, "cgroup.procs"), fmt.Append(nil, pid), 0); err != nil {
				errs = append(errs, fmt.Errorf("move process %d to cgroup %s: %w", pid, group, err))
			}
		}
	}
	return errors.Join(errs...)
}

// RootProcesses returns the processes of the root cgroup, without kernel threads and PID 1.
func (t *Tree) RootProcesses() ([]int, error) {
	text, err := os.ReadFile(t.hierarchy.primaryDir("/cgroup.procs"))
	if err != nil {
		return nil, fmt.Errorf("list processes of the root cgroup: %w", err)
	}
	var pids []int
	for field := range strings.FieldsSeq(string(text)) {
		var pid int
		if _, err := fmt.Sscan(field, &pid); err != nil || pid <= 1 {
			continue
		}
		if _, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil { // a kernel thread has none
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
