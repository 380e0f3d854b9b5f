package e2e

import (
	"strings"
	"testing"
)

// TestWithoutGroups runs and removes a pod on a node whose pods have no cgroups of their own.
func TestWithoutGroups(t *testing.T) {
	t.Parallel()
	node := configuredNode(t, "without-groups", "{cgroupsPerQOS: false, enforceNodeAllocatable: []}")
	space := namespace(t)
	create(t, space, resizable("free", node.Name(), amounts{100, 200, 64}))
	awaitPod(t, space, "free", usual, ready)
	out, err := node.Exec(t.Context(), "find", "/sys/fs/cgroup/memory", "-name", "*pod*")
	if err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("there are groups of pods: %v\n%s", err, out)
	}
	remove(t, space, "free")
}
