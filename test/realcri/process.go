package realcri

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swiftlet/test/pdeathsig"
)

// start starts a process that is killed when the test ends or this process dies.
func start(t testing.TB, cmd *exec.Cmd) error {
	exited, err := pdeathsig.Start(cmd)
	if err != nil {
		return err
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // kills all processes of its pid namespace
		<-exited
	})
	return nil
}

// cleanUp removes cgroups and files. It is registered before the processes start, so it runs after
// they have exited.
func (r *Runtime) cleanUp() {
	if r.t.Failed() {
		if log, err := os.ReadFile(filepath.Join(r.dir, "containerd.log")); err == nil {
			r.t.Logf("end of containerd's log:\n%s", log[max(0, len(log)-4000):])
		}
	}
	if r.containerd != nil {
		<-r.exited
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		left := removeCgroups(r.CgroupParent())
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			r.t.Errorf("cgroups left: %v", left)
			break
		}
	}
	if err := os.RemoveAll(r.dir); err != nil {
		r.t.Error(err)
	}
}

// removeCgroups removes the cgroup from all hierarchies, children first, and returns those that
// could not be removed yet.
func removeCgroups(parent string) (left []string) {
	roots, _ := filepath.Glob("/sys/fs/cgroup/*" + parent)
	roots = append(roots, "/sys/fs/cgroup"+parent)
	for _, root := range roots {
		var dirs []string
		_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for i := len(dirs) - 1; i >= 0; i-- {
			if err := os.Remove(dirs[i]); err != nil && !os.IsNotExist(err) {
				left = append(left, dirs[i])
			}
		}
	}
	return left
}

// bundle returns the directory of containerd, runc and the CNI plugins.
func bundle(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("SWIFTLET_BUNDLE"); dir != "" {
		return dir
	}
	gomod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(filepath.Dir(string(gomod)), "hack/build-tools.sh"), "bundle")
	cmd.Stderr = os.Stderr // it may build for minutes and prints its progress
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("find bundled runtime: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// cacheDir follows the rule of hack/build-tools.sh.
func cacheDir() string {
	if dir := os.Getenv("SWIFTLET_CACHE"); dir != "" {
		return dir
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "swiftlet")
	}
	return filepath.Join(os.TempDir(), "swiftlet")
}
