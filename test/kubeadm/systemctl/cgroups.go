package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// serviceCgroups are the service's cgroups, one per hierarchy of cgroup v1.
func serviceCgroups(name string) ([]string, error) {
	hierarchies, err := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, file := range hierarchies {
		dirs = append(dirs, filepath.Join(filepath.Dir(file), "system.slice", name+".service"))
	}
	return dirs, nil
}

// enterCgroups moves this process to the service's cgroups, where the service's process starts.
func enterCgroups(name string) error {
	dirs, err := serviceCgroups(name)
	if err != nil {
		return fmt.Errorf("enter cgroups: %w", err)
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("enter cgroups: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0o644); err != nil {
			return fmt.Errorf("enter cgroups: %w", err)
		}
	}
	return nil
}

// killLeftovers kills the processes of the service's cgroup, except this one.
func killLeftovers(name string) error {
	dirs, err := serviceCgroups(name)
	if err != nil || len(dirs) == 0 {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dirs[0], "cgroup.procs"))
	if err != nil {
		return fmt.Errorf("kill leftovers of %s: %w", name, err)
	}
	for field := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil || pid <= 0 || pid == os.Getpid() {
			continue
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill leftovers of %s: %w", name, err)
		}
	}
	return nil
}
