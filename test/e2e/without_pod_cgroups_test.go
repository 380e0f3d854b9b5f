package e2e

import (
	"strings"
	"testing"
)

// TestWithoutPodCgroups runs and deletes a pod on a node with cgroupsPerQOS: false.
func TestWithoutPodCgroups(t *testing.T) {
	t.Parallel()
	node := configuredNode(t, "without-groups", "{cgroupsPerQOS: false, enforceNodeAllocatable: []}")
	space := namespace(t)
	create(t, space, resizable("free", node.Name(), amounts{100, 200, 64}))
	awaitPod(t, space, "free", timeout, ready)
	out, err := node.Exec(t.Context(), "find", "/sys/fs/cgroup/memory", "-name", "*pod*")
	if err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("there are pod cgroups: %v\n%s", err, out)
	}
	deletePod(t, space, "free")
}
