// Package quotatest mounts file systems with project quotas for tests.
package quotatest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// size is the minimum for XFS.
const size = 320 << 20

// programs create the file systems, by type.
var programs = map[string][]string{
	"ext4": {"mkfs.ext4", "-q", "-F", "-O", "quota,project", "-E", "quotatype=prjquota"},
	"xfs":  {"mkfs.xfs", "-q", "-f", "-K"},
}

// Kinds are the types of file systems with project quotas.
func Kinds() []string { return []string{"ext4", "xfs"} }

// Mount mounts a new file system of the type and returns the mount point. It skips the test if the
// kernel has no quota support; make test-cgroup2 runs one that has.
func Mount(t testing.TB, kind string) string {
	t.Helper()
	// Quota support of ext4 may be a module; a kernel without it has none for XFS, either.
	_, unknown := exec.Command("modprobe", "quota_v2").CombinedOutput()
	if unknown == nil {
		run(t, "modprobe", "loop")
	}
	file, dir := filepath.Join(t.TempDir(), "disk"), filepath.Join(t.TempDir(), kind)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, append(programs[kind], file)...)
	mount := []string{"mount", "-t", kind, "-o", "loop,prjquota", file, dir}
	if out, err := exec.Command(mount[0], mount[1:]...).CombinedOutput(); err != nil {
		if unknown != nil {
			t.Skipf("this kernel has no project quotas (%s); make test-cgroup2 has one that does", out)
		}
		t.Fatalf("%q: %v: %s", mount, err, out)
	}
	t.Cleanup(func() { run(t, "umount", dir) })
	return dir
}

func run(t testing.TB, command ...string) {
	t.Helper()
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", command, err, out)
	}
}
