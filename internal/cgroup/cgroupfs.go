package cgroup

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fs"
	"github.com/opencontainers/cgroups/fs2"
)

// cgroupfsWriter is the cgroupfs driver.
type cgroupfsWriter struct{ Hierarchy }

func (w cgroupfsWriter) create(n cgroupName, r Resources) error {
	config := w.config(n, r)
	if w.Version == 2 {
		if err := w.mkdirV2(config.Path); err != nil {
			return fmt.Errorf("create cgroup %s: %w", config.Path, err)
		}
	} else {
		m, err := fs.NewManager(config, w.dirs(config.Path))
		if err != nil {
			return fmt.Errorf("create cgroup %s: %w", config.Path, err)
		}
		// With PID -1 it creates the directories and moves no process.
		if err := m.Apply(-1); err != nil {
			return fmt.Errorf("create cgroup %s: %w", config.Path, err)
		}
	}
	return w.set(n, r)
}

func (w cgroupfsWriter) set(n cgroupName, r Resources) error {
	config := w.config(n, r)
	var m cgroups.Manager
	var err error
	if w.Version == 2 {
		m, err = fs2.NewManager(config, w.Mounts[""]+config.Path)
	} else {
		m, err = fs.NewManager(config, w.dirs(config.Path))
	}
	if err != nil {
		return fmt.Errorf("set cgroup %s: %w", config.Path, err)
	}
	if err := m.Set(config.Resources); err != nil {
		return fmt.Errorf("set cgroup %s: %w", config.Path, err)
	}
	return nil
}

func (w cgroupfsWriter) stopUnit(cgroupName) error { return nil }

func (w cgroupfsWriter) config(n cgroupName, r Resources) *cgroups.Cgroup {
	return &cgroups.Cgroup{Path: n.path(Cgroupfs), Resources: w.resources(r)}
}

// mkdirV2 creates a directory and its parents, and enables all controllers in it.
func (w cgroupfsWriter) mkdirV2(path string) error {
	current := w.Mounts[""]
	available, err := availableControllers(current)
	if err != nil {
		return err
	}
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if err := enableControllers(current, available); err != nil {
			return err
		}
		current += "/" + part
		if err := os.Mkdir(current, 0o755); err != nil && !os.IsExist(err) {
			return err
		}
	}
	return nil
}

// enableControllers enables the controllers for dir's children. It ignores those that the kernel
// does not delegate, as in a container: setting a limit that needs one fails later.
func enableControllers(dir string, available []string) error {
	enabled, err := cgroups.ReadFile(dir, "cgroup.subtree_control")
	if err != nil {
		return err
	}
	var missing []string
	for _, c := range available {
		if !slices.Contains(strings.Fields(enabled), c) {
			missing = append(missing, "+"+c)
		}
	}
	if len(missing) == 0 || cgroups.WriteFile(dir, "cgroup.subtree_control", strings.Join(missing, " ")) == nil {
		return nil
	}
	for _, c := range missing {
		_ = cgroups.WriteFile(dir, "cgroup.subtree_control", c)
	}
	return nil
}

// availableControllers returns the controllers of a v2 cgroup.
func availableControllers(dir string) ([]string, error) {
	text, err := cgroups.ReadFile(dir, "cgroup.controllers")
	if err != nil {
		return nil, err
	}
	return strings.Fields(text), nil
}
