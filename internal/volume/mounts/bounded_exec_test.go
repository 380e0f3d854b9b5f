package mounts

import (
	"errors"
	"testing"
	"time"

	utilexec "k8s.io/utils/exec"
)

// The library tells exit codes and missing programs apart by the types of its own package.
func TestBoundedExec(t *testing.T) {
	run := boundedExec{utilexec.New()}
	out, err := run.Command("sh", "-c", "echo out; exit 4").CombinedOutput()
	if exit, ok := err.(utilexec.ExitError); !ok || exit.ExitStatus() != 4 || string(out) != "out\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := run.Command("no-such-program").CombinedOutput(); !errors.Is(err, utilexec.ErrExecutableNotFound) {
		t.Errorf("got %v", err)
	}
	for name, want := range map[string]time.Duration{"fsck": repairTimeout, "mkfs.ext4": repairTimeout, "blkid": queryTimeout, "xfs_growfs": repairTimeout} {
		if got := timeoutOf(name); got != want {
			t.Errorf("%s has %v, want %v", name, got, want)
		}
	}
}
