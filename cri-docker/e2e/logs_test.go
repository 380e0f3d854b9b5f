package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestLogFormat(t *testing.T) {
	p := runPod(t, shared)
	id := p.run("c", `echo out; echo err >&2; head -c 20000 /dev/zero | tr '\0' x; echo; printf end`)
	p.exited(id)
	got := p.output("c")
	for _, want := range []string{"stdout F out\n", "stderr F err\n", "stdout P " + strings.Repeat("x", 16384) + "\n", "stdout F " + strings.Repeat("x", 20000-16384) + "\n", "stdout P end\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("log does not have %.40q: %.200q", want, got)
		}
	}
}

// TestLogsAcrossRotationsAndKills: a container counts while its log is rotated and the server is killed. No
// number may be missing or repeated, and a complete log is there when the status says that it has exited.
func TestLogsAcrossRotationsAndKills(t *testing.T) {
	s := ownShim(t)
	p := runPod(t, s)
	const lines = 20000
	id := p.run("count", fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); echo line $i; done", lines))
	log := filepath.Join(p.config.LogDirectory, "count/0.log")
	var rotated []string
	for round := range 6 {
		size := func() int64 {
			info, err := os.Stat(log)
			if err != nil {
				return 0
			}
			return info.Size()
		}
		before := size()
		eventually(t, "growth of the log", func() bool {
			return size() > before || p.containerStatus(id).GetState() == runtimeapi.ContainerState_CONTAINER_EXITED
		})
		if round%2 == 0 {
			s.restart(t)
			continue
		}
		name := fmt.Sprintf("%s.%d", log, round)
		if err := os.Rename(log, name); err != nil {
			t.Fatal(err)
		}
		rotated = append(rotated, name)
		if _, err := s.ReopenContainerLog(t.Context(), &runtimeapi.ReopenContainerLogRequest{ContainerId: id}); err != nil {
			if p.containerStatus(id).GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
				break
			}
			t.Fatal(err)
		}
	}
	p.exited(id)
	var got, want strings.Builder
	for _, name := range append(rotated, log) {
		if _, err := os.Stat(name); err == nil {
			got.WriteString(textOf(t, name))
		}
	}
	for i := range lines {
		fmt.Fprintf(&want, "stdout F line %d\n", i+1)
	}
	if got.String() != want.String() {
		t.Errorf("%d bytes of log; want %d: first difference at %s", got.Len(), want.Len(), firstDifference(got.String(), want.String()))
	}
	if len(rotated) == 0 {
		t.Error("the log was not rotated")
	}
}

func firstDifference(got, want string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("byte %d: %.60q; want %.60q", i, got[max(0, i-20):], want[max(0, i-20):])
		}
	}
	return "the end"
}

// TestLogOfContainerThatEndsWhileTheServerIsDown: the log is completed at the next start.
func TestLogOfContainerThatEndsWhileTheServerIsDown(t *testing.T) {
	s := ownShim(t)
	p := runPod(t, s)
	gate := box.Path("gate-" + p.id[:8])
	id := p.run("c", "echo before; while [ ! -e /gate/open ]; do sleep 0.05; done; echo after", func(c *runtimeapi.ContainerConfig) {
		c.Mounts = []*runtimeapi.Mount{{HostPath: gate, ContainerPath: "/gate"}}
	})
	eventually(t, "first line", func() bool { return p.output("c") == "stdout F before\n" })
	s.process.Kill()
	if err := os.WriteFile(gate+"/open", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	docker, err := box.Docker()
	if err != nil {
		t.Fatal(err)
	}
	defer docker.Close()
	eventually(t, "exit", func() bool { return !running(t, docker, id) })
	s.startAgain(t)
	if got := p.containerStatus(id); got.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED {
		t.Errorf("state %s; want exited", got.GetState())
	}
	if got, want := p.output("c"), "stdout F before\nstdout F after\n"; got != want {
		t.Errorf("log %q; want %q", got, want)
	}
}

func TestLogIsNotWrittenThroughLink(t *testing.T) {
	p := runPod(t, shared)
	id := p.create("c", "echo x")
	dir := filepath.Join(p.config.LogDirectory, "c")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "target")
	if err := os.Symlink(target, filepath.Join(dir, "0.log")); err != nil {
		t.Fatal(err)
	}
	_, err := shared.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: id})
	if err == nil || !strings.Contains(err.Error(), "open log") {
		t.Errorf("start: %v; want an error about the log", err)
	}
	if _, err := os.Stat(target); !os.IsNotExist(err) {
		t.Errorf("the link was followed: %v", err)
	}
}
