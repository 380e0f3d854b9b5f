package cgroup

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// PodMemoryUsage returns the memory that the kernel charges to p's cgroup.
func (t *Tree) PodMemoryUsage(p *v1.Pod) (uint64, error) {
	file := "memory.usage_in_bytes"
	if t.hierarchy.Version == 2 {
		file = "memory.current"
	}
	content, err := os.ReadFile(filepath.Join(t.PodDir(p, "memory"), file))
	if err != nil {
		return 0, fmt.Errorf("read memory usage of pod: %w", err)
	}
	used, err := strconv.ParseUint(string(bytes.TrimSpace(content)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read memory usage of pod: %w", err)
	}
	return used, nil
}
