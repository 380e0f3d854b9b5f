package standalone

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/test/poll"
)

func TestStopRemovesEverything(t *testing.T) {
	if !box(t) {
		return
	}
	m := newMachine(t)
	for _, backend := range []string{"nft", "iptables"} {
		t.Run(backend, func(t *testing.T) {
			if backend == "iptables" {
				hideNft(t)
			}
			m.t = t
			before := hostTraces(t)
			down := m.up(idleAgent)
			m.runPod("web", 8080)
			poll.Check(t, "call the pod through its host port", func() error { return get("http://127.0.0.1:8080/healthz") })
			if err := down(); err != nil {
				t.Fatal(err)
			}
			for name, now := range hostTraces(t) {
				if name == "tables" && backend == "iptables" {
					continue // only nft can remove the empty tables that iptables makes
				}
				if now != before[name] {
					t.Errorf("%s left behind:\nbefore: %s\nafter:  %s", name, before[name], now)
				}
			}
		})
	}
}

func TestPodsSurviveRuntimeCrash(t *testing.T) {
	if !box(t) {
		return
	}
	m := newMachine(t)
	down := m.up(idleAgent)
	_, container := m.runPod("web", 8080)
	first := m.runtimePID()
	if err := unix.Kill(first, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	poll.Check(t, "the runtime is back", func() error {
		if pid := m.runtimePID(); pid == 0 || pid == first {
			return errNotYet
		}
		return m.running(container)
	})
	if err := get("http://127.0.0.1:8080/healthz"); err != nil {
		t.Errorf("the pod does not answer: %v", err)
	}
	if err := down(); err != nil {
		t.Fatal(err)
	}
}

func TestNextInstanceAdoptsKeptPods(t *testing.T) {
	if !box(t) {
		return
	}
	m := newMachine(t)
	m.cfg.Keep = true
	down := m.up(idleAgent)
	_, container := m.runPod("web", 8080)
	first := m.runtimePID()
	if err := down(); err != nil {
		t.Fatal(err)
	}
	m.cfg.Keep = false
	down = m.up(idleAgent)
	if pid := m.runtimePID(); pid != first {
		t.Errorf("the runtime was replaced: process %d, was %d", pid, first)
	}
	if err := m.running(container); err != nil {
		t.Error(err)
	}
	if err := down(); err != nil {
		t.Fatal(err)
	}
	if exists(m.cfg.Paths.run) {
		t.Errorf("%s still exists", m.cfg.Paths.run)
	}
}

// If program or configuration changed, the running containerd is replaced, and pods keep running.
func TestOutdatedRuntimeIsReplacedUnderPods(t *testing.T) {
	if !box(t) {
		return
	}
	m := newMachine(t)
	m.cfg.Keep = true
	down := m.up(idleAgent)
	_, container := m.runPod("web", 8080)
	first := m.runtimePID()
	if err := down(); err != nil {
		t.Fatal(err)
	}
	config := m.cfg.Paths.containerdConfig()
	if err := os.WriteFile(config, []byte("# an older release\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.cfg.Keep = false
	down = m.up(idleAgent)
	if pid := m.runtimePID(); pid == first || pid == 0 {
		t.Errorf("the runtime was not replaced: process %d, was %d", pid, first)
	}
	if err := m.running(container); err != nil {
		t.Error(err)
	}
	if err := down(); err != nil {
		t.Fatal(err)
	}
}

func TestSecondInstanceIsRefused(t *testing.T) {
	if !box(t) {
		return
	}
	m := newMachine(t)
	down := m.up(idleAgent)
	err := m.runExpectingFailure()
	if want := fmt.Sprintf("process %d", os.Getpid()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error with %q", err, want)
	}
	if err := down(); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) runtimePID() int {
	p, err := listener(m.cfg.Paths.Socket())
	if err != nil || p == nil {
		return 0
	}
	defer p.close()
	return p.pid
}

func (m *machine) running(container string) error {
	answer, err := m.cri.ContainerStatus(m.t.Context(), container, false)
	if err != nil {
		return err
	}
	if answer.Status.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return fmt.Errorf("container %s is %s", container, answer.Status.State)
	}
	return nil
}

func get(url string) error {
	client := http.Client{Timeout: 2 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return nil
}

// hideNft gives the test a PATH in which iptables exists and nft does not.
func hideNft(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	entries, err := filepath.Glob("/usr/*bin/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if filepath.Base(e) != "nft" {
			_ = os.Symlink(e, filepath.Join(dir, filepath.Base(e)))
		}
	}
	t.Setenv("PATH", dir)
}
