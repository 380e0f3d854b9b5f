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

// Group is a cgroup of a pod, or one above pods.
type Group struct {
	Path string    // below each controller's mount, starting with "/"
	Pod  types.UID // empty for the cgroups above pods
}

// Hierarchy returns where the kernel's cgroup trees are mounted.
func (t *Tree) Hierarchy() Hierarchy { return t.hierarchy }

// Dir returns the directory of a cgroup in the controller's tree, "" where the controller is not
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

// Groups lists the existing cgroups: that of all pods first, then those of the QoS classes, then
// those of pods.
func (t *Tree) Groups() ([]Group, error) {
	var above, pods []Group
	for _, class := range t.qosCgroups() {
		parent := class.path(t.driver)
		entries, err := os.ReadDir(t.hierarchy.primaryDir(parent))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list cgroups: %w", err)
		}
		above = append(above, Group{Path: parent})
		for _, e := range entries {
			if uid, ok := class.podUID(t.driver, e.Name()); ok && e.IsDir() {
				pods = append(pods, Group{Path: path.Join(parent, e.Name()), Pod: uid})
			}
		}
	}
	return append(above, pods...), nil
}

// KubeletCgroup returns the cgroup of this process, "" where the kernel accounts its CPU time
// and its memory to different ones.
func (t *Tree) KubeletCgroup() string {
	own, err := cgroups.ParseCgroupFile("/proc/self/cgroup")
	switch {
	case err != nil:
		return ""
	case t.hierarchy.Version == 2:
		return own[""]
	case own["memory"] != own["cpuacct"]:
		return ""
	}
	return own["memory"]
}
