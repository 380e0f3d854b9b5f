package standalone

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A pod that does not end when asked must not hold up a user who asks twice.
func TestHurryDoesNotWaitForGrace(t *testing.T) {
	if !box(t) {
		return
	}
	m := newMachine(t)
	m.grace = 3600 * time.Second
	down := m.up(idleAgent)
	m.runPod("web", 8080)
	before := traces(t)
	freeze(t, "/example")
	close(m.hurry)
	began := time.Now()
	if err := down(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	if after := traces(t); after["processes"] != "" {
		t.Errorf("processes left: %s\nbefore: %s", after["processes"], before["processes"])
	}
}

// Whatever the runtime could not stop must be gone too.
func TestLeftoversAreSwept(t *testing.T) {
	if !box(t) {
		return
	}
	m := newMachine(t)
	before := traces(t)
	down := m.up(func(ctx context.Context, run AgentRun) error {
		idleAgent(ctx, run)
		return errors.New("the agent broke")
	})
	sandbox, _ := m.runPod("web", 8080)
	// The runtime forgets the pod: its record goes, its processes, mounts and rules stay. It
	// may have been about to pause a container, whose processes then cannot die.
	freezeGroups(t)
	killAll(t, "containerd-shim-runc-v2")
	m.supervisor.deps.Runtime = forgetful{m.cri}
	err := down()
	if err == nil || !errors.Is(err, errForgot) {
		t.Errorf("got %v, want the runtime's error among the results", err)
	}
	after := traces(t)
	for _, name := range []string{"processes", "mounts", "interfaces", "netns", "rules", "cgroups", "cni", "run"} {
		if after[name] != before[name] {
			t.Errorf("%s of sandbox %s left behind:\nbefore: %s\nafter:  %s", name, sandbox, before[name], after[name])
		}
	}
}

// forgetful is a runtime that cannot say which pods it has.
type forgetful struct{ Runtime }

var errForgot = errors.New("forgot")

func (forgetful) ListPodSandboxes(context.Context, *sandboxFilter) ([]*sandboxItem, error) {
	return nil, errForgot
}

// freezeGroups freezes the innermost groups of all pods, as runc does before it kills.
func freezeGroups(t *testing.T) {
	t.Helper()
	files, _ := filepath.Glob("/sys/fs/cgroup/freezer/swiftlet/web/*/freezer.state")
	if len(files) == 0 {
		t.Fatal("no group to freeze")
	}
	for _, file := range files {
		if err := os.WriteFile(file, []byte("FROZEN"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func freeze(t *testing.T, program string) { signalAll(t, program, unix.SIGSTOP) }

func killAll(t *testing.T, program string) { signalAll(t, program, unix.SIGKILL) }

// signalAll signals every process of the box whose executable has the name.
func signalAll(t *testing.T, program string, s unix.Signal) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || filepath.Base(target) != filepath.Base(program) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil {
			t.Fatal(err)
		}
		found++
		if err := unix.Kill(pid, s); err != nil {
			t.Fatal(err)
		}
	}
	if found == 0 {
		t.Fatalf("no process of %s", program)
	}
}

// What is mounted in the folder is not ours to delete.
func TestNothingIsDeletedThroughAMount(t *testing.T) {
	if !box(t) {
		return
	}
	folder, other := t.TempDir(), t.TempDir()
	precious := filepath.Join(other, "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	point := filepath.Join(folder, "point")
	if err := os.Mkdir(point, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(other, point, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := removeUnmounted(folder); err == nil {
		t.Error("it was removed")
	}
	if !exists(precious) {
		t.Fatal("a file behind the mount was deleted")
	}
	if err := unmountBelow(folder); err != nil {
		t.Fatal(err)
	}
	if err := removeUnmounted(folder); err != nil || exists(folder) || !exists(precious) {
		t.Errorf("after unmounting: error %v, folder there %v, file there %v", err, exists(folder), exists(precious))
	}
}

// A runtime that does not start leaves nothing; one that does not start over running pods
// leaves them alone.
func TestRuntimeThatDoesNotStart(t *testing.T) {
	if !box(t) {
		return
	}
	m := newMachine(t)
	m.cfg.Keep = true
	down := m.up(idleAgent)
	m.runPod("web", 8080)
	if err := down(); err != nil {
		t.Fatal(err)
	}
	m.cfg.Keep = false
	killAll(t, "containerd")
	real := m.cfg.Places.bundle
	broken := t.TempDir()
	if err := os.CopyFS(broken, os.DirFS(real)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "containerd"), []byte("not a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	m.cfg.Places.bundle = broken
	if err := m.fails(); err == nil {
		t.Fatal("it came up with a broken runtime")
	}
	if err := get("http://127.0.0.1:8080/healthz"); err != nil {
		t.Errorf("the pod does not answer any more: %v", err)
	}
	m.cfg.Places.bundle = real
	if err := m.up(idleAgent)(); err != nil {
		t.Fatal(err)
	}
	m.cfg.Places.bundle = broken
	if err := m.fails(); err == nil {
		t.Fatal("it came up with a broken runtime")
	}
	if exists(m.cfg.Places.run) {
		t.Errorf("%s is left", m.cfg.Places.run)
	}
}
