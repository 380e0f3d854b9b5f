package realcri

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startAndTie starts a process that dies with this one, even if this one is killed, and
// at the latest when the test ends. The kernel ties it to the thread that started it, so
// that thread waits for it.
func startAndTie(t testing.TB, cmd *exec.Cmd) error {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(ended)
	}()
	if err := <-started; err != nil {
		return err
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the first process of a pid namespace takes all others along
		<-ended
	})
	return nil
}

// clean removes what is left when all processes have ended. It is registered before them,
// so it runs after them.
func (r *Runtime) clean() {
	if r.t.Failed() {
		if log, err := os.ReadFile(filepath.Join(r.dir, "containerd.log")); err == nil {
			r.t.Logf("containerd's last words:\n%s", log[max(0, len(log)-4000):])
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
			r.t.Errorf("cgroups are left: %v", left)
			break
		}
	}
	if err := os.RemoveAll(r.dir); err != nil {
		r.t.Error(err)
	}
}

// removeCgroups removes the cgroup from all trees, children first, and returns what could
// not be removed yet.
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

// bundle is the directory with containerd, runc and the CNI plugins.
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
	cmd.Stderr = os.Stderr // it may build for minutes, and says so
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("find the bundled runtime: %v", err)
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
