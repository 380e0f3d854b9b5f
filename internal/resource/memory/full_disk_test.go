package memory

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"swiftlet/internal/resource/numa"
	"swiftlet/test/crashfs"
)

// TestStartOnFullDisk: without space, the agent starts with the state that it has read.
func TestStartOnFullDisk(t *testing.T) {
	disk := crashfs.Mount(t)
	var events []string
	cfg := configOn(t, dual)
	cfg.Path = filepath.Join(disk.Dir, "memory_manager_state")
	one, two := testPod("one", guaranteed("a", "5Gi")), testPod("two", guaranteed("a", "5Gi"))
	first := start(t, cfg, &events)
	if err := errors.Join(first.Allocate(t.Context(), one, &one.Spec.Containers[0], numa.Hint{}), first.Written(t.Context())); err != nil {
		t.Fatal(err)
	}
	disk.Fail(func(int, crashfs.Op) syscall.Errno { return syscall.ENOSPC })
	m := start(t, cfg, &events)
	if got := m.NUMANodes("one", "a"); got != "0" {
		t.Errorf("NUMA nodes %q, want those of the file", got)
	}
	if err := m.Allocate(t.Context(), two, &two.Spec.Containers[0], numa.Hint{}); err != nil {
		t.Fatal(err)
	}
	if err := m.Written(t.Context()); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), cfg.Path) {
		t.Errorf("the allocation is not in the file: %v", err)
	}
	disk.Fail(nil)
	if err := m.Written(t.Context()); err != nil {
		t.Error(err)
	}
}
