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

// After a second signal, a pod that ignores SIGTERM must not delay the exit.
func TestForceStopSkipsGracePeriod(t *testing.T) {
	if !box(t) {
		return
	}
	m := newMachine(t)
	m.grace = 3600 * time.Second
	down := m.up(idleAgent)
	m.runPod("web", 8080)
	before := hostTraces(t)
	freeze(t, "/example")
	close(m.force)
	began := time.Now()
	if err := down(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("forced stop took %s, want less than a minute", took)
	}
	if after := hostTraces(t); after["processes"] != "" {
		t.Errorf("processes left: %s\nbefore: %s", after["processes"], before["processes"])
	}
}

// Teardown must also remove pods that the runtime cannot stop.
func TestTeardownRemovesWhatRuntimeLeft(t *testing.T) {
	if !box(t) {
		return
	}
	m := newMachine(t)
	before := hostTraces(t)
	down := m.up(func(ctx context.Context, run AgentRun) error {
		idleAgent(ctx, run)
		return errors.New("agent failed")
	})
	sandbox, _ := m.runPod("web", 8080)
	// The runtime cannot list the pod any more, while its processes, mounts and rules exist. Its
	// cgroup is frozen, as if the runtime had been about to kill it.
	freezeCgroups(t)
	killAll(t, "containerd-shim-runc-v2")
	m.supervisor.deps.Runtime = listFails{m.cri}
	err := down()
	if err == nil || !errors.Is(err, errListSandboxes) {
		t.Errorf("got %v, want the error of ListPodSandboxes among them", err)
	}
	after := hostTraces(t)
	for _, name := range []string{"processes", "mounts", "interfaces", "netns", "rules", "cgroups", "cni", "run"} {
		if after[name] != before[name] {
			t.Errorf("%s of sandbox %s left behind:\nbefore: %s\nafter:  %s", name, sandbox, before[name], after[name])
		}
	}
}

// listFails is a runtime whose ListPodSandboxes fails.
type listFails struct{ Runtime }

var errListSandboxes = errors.New("list failed")

func (listFails) ListPodSandboxes(context.Context, *sandboxFilter) ([]*sandboxItem, error) {
	return nil, errListSandboxes
}

// freezeCgroups freezes the container cgroups of the pod, as runc does before it kills.
func freezeCgroups(t *testing.T) {
	t.Helper()
	files, _ := filepath.Glob("/sys/fs/cgroup/freezer/swiftlet/web/*/freezer.state")
	if len(files) == 0 {
		t.Fatal("no cgroup to freeze")
	}
	for _, file := range files {
		if err := os.WriteFile(file, []byte("FROZEN"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func freeze(t *testing.T, program string) { signalAll(t, program, unix.SIGSTOP) }

func killAll(t *testing.T, program string) { signalAll(t, program, unix.SIGKILL) }

// signalAll signals every process in the box whose executable has the name.
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

// Files behind a mount point must not be deleted.
func TestRemoveStopsAtMounts(t *testing.T) {
	if !box(t) {
		return
	}
	dir, other := t.TempDir(), t.TempDir()
	keptFile := filepath.Join(other, "kept")
	if err := os.WriteFile(keptFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	point := filepath.Join(dir, "point")
	if err := os.Mkdir(point, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(other, point, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := removeUnmounted(dir); err == nil {
		t.Error("the directory was removed in spite of the mount")
	}
	if !exists(keptFile) {
		t.Fatal("a file behind the mount was deleted")
	}
	if err := unmountBelow(dir); err != nil {
		t.Fatal(err)
	}
	if err := removeUnmounted(dir); err != nil || exists(dir) || !exists(keptFile) {
		t.Errorf("after unmounting: error %v, directory exists %v, kept file exists %v", err, exists(dir), exists(keptFile))
	}
}

// If the runtime fails to start, Run removes everything, unless pods of an earlier instance run.
func TestRuntimeFailsToStart(t *testing.T) {
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
	real := m.cfg.Paths.bundle
	broken := t.TempDir()
	if err := os.CopyFS(broken, os.DirFS(real)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "containerd"), []byte("not a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	m.cfg.Paths.bundle = broken
	if err := m.runExpectingFailure(); err == nil {
		t.Fatal("Run succeeded with a broken runtime")
	}
	if err := get("http://127.0.0.1:8080/healthz"); err != nil {
		t.Errorf("the pod no longer answers: %v", err)
	}
	m.cfg.Paths.bundle = real
	if err := m.up(idleAgent)(); err != nil {
		t.Fatal(err)
	}
	m.cfg.Paths.bundle = broken
	if err := m.runExpectingFailure(); err == nil {
		t.Fatal("Run succeeded with a broken runtime")
	}
	if exists(m.cfg.Paths.run) {
		t.Errorf("%s still exists", m.cfg.Paths.run)
	}
}
