package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/opencontainers/cgroups"
	"k8s.io/apimachinery/pkg/types"
)

// Group is one directory of the pods' part of the tree, for those who read it.
type Group struct {
	Path string    // below each controller's mount, starting with "/"
	Pod  types.UID // empty for the groups above pods
}

// Hierarchy says where the tree is mounted.
func (t *Tree) Hierarchy() Hierarchy { return t.hierarchy }

// Dir is the directory of a group in the controller's tree, "" where the controller is not
// mounted. On v2 all controllers share one tree.
func (h Hierarchy) Dir(controller, group string) string {
	if h.Version == 2 {
		controller = ""
	}
	mount := h.Mounts[controller]
	if mount == "" {
		return ""
	}
	return path.Join(mount, group)
}

// Groups lists the group of all pods first, then the QoS classes, then each pod's. What
// was not made yet is left out.
func (t *Tree) Groups() ([]Group, error) {
	var above, pods []Group
	for _, class := range t.classes() {
		at := class.path(t.driver)
		entries, err := os.ReadDir(t.hierarchy.witness(at))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list cgroups: %w", err)
		}
		above = append(above, Group{Path: at})
		for _, e := range entries {
			if uid, ok := class.podUID(t.driver, e.Name()); ok && e.IsDir() {
				pods = append(pods, Group{Path: path.Join(at, e.Name()), Pod: uid})
			}
		}
	}
	return append(above, pods...), nil
}

// Own is the group that this process is in, "" where its CPU time and its memory are not
// counted in the same one.
func (t *Tree) Own() string {
	in, err := cgroups.ParseCgroupFile("/proc/self/cgroup")
	switch {
	case err != nil:
		return ""
	case t.hierarchy.Version == 2:
		return in[""]
	case in["memory"] != in["cpuacct"]:
		return ""
	}
	return in["memory"]
}
