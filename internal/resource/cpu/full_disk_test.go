package cpu

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"swiftlet/test/crashfs"
)

// TestStartOnFullDisk: without space, the agent starts with the state that it has read.
func TestStartOnFullDisk(t *testing.T) {
	disk := crashfs.Mount(t)
	n := newNode(t, "1 socket, SMT")
	n.cfg.Path = filepath.Join(disk.Dir, "cpu_manager_state")
	one := testPod("one", guaranteed("a", "2"))
	if err := admit(n.start(), one); err != nil {
		t.Fatal(err)
	}
	disk.Fail(func(int, crashfs.Op) syscall.Errno { return syscall.ENOSPC })
	c := n.start()
	if got := c.CPUSet("one", "a").String(); got != "1,9" {
		t.Errorf("CPUs %s, want those of the file", got)
	}
	if err := admit(c, testPod("two", guaranteed("a", "1"))); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), n.cfg.Path) {
		t.Errorf("CPUs are allocated without writing them: %v", err)
	}
	disk.Fail(nil)
	if err := admit(c, testPod("two", guaranteed("a", "1"))); err != nil {
		t.Error(err)
	}
}
