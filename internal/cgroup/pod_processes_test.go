package cgroup

import (
	"os"
	"slices"
	"testing"
)

// TestFewProcessesAreDescribed: a pod may have as many as the kernel allows, and each takes system calls to describe.
func TestFewProcessesAreDescribed(t *testing.T) {
	described := 0
	all := describe(slices.Repeat([]int{os.Getpid()}, 3*maxDescribed))
	for _, p := range all {
		if p.PID != os.Getpid() {
			t.Fatalf("process %d", p.PID)
		}
		if p.State != "" {
			described++
		}
	}
	if len(all) != 3*maxDescribed || described != maxDescribed {
		t.Errorf("%d of %d described, want %d of %d", described, len(all), maxDescribed, 3*maxDescribed)
	}
}
