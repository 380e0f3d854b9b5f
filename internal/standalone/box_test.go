package standalone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/cri"
)

// The tests on the real runtime run in a box: the test binary runs itself again in namespaces of
// its own, where it cannot harm the host and where leftovers can be found.
const inBox = "SWIFTLET_TEST_IN_BOX"

// box runs the test inside a box, or skips it without root. It returns true inside the box, and
// false outside once the test has passed inside.
func box(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inBox) != "" {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if bundle() == "" || images() == "" {
		t.Fatal("bin/bundle or bin/images is missing: run make build")
	}
	name := fmt.Sprintf("swiftlet-test-%d", os.Getpid())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "testdata/box.sh", name, self, "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout", "3m")
	command.Env = append(os.Environ(), inBox+"=1")
	out, err := command.CombinedOutput()
	removeBoxCgroups(name)
	if err != nil {
		t.Fatalf("in the box: %v\n%s", err, out)
	}
	if testing.Verbose() {
		t.Logf("in the box:\n%s", out)
	}
	return false
}

func removeBoxCgroups(name string) {
	for _, pattern := range []string{"/sys/fs/cgroup/" + name, "/sys/fs/cgroup/*/" + name} {
		tops, _ := filepath.Glob(pattern)
		for _, top := range tops {
			var dirs []string
			_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					dirs = append(dirs, path)
				}
				return nil
			})
			for _, dir := range slices.Backward(dirs) {
				_ = os.Remove(dir)
			}
		}
	}
}

func bundle() string { return built("bundle", "containerd") }
func images() string { return built("images", "pause.tar") }

func built(dir, file string) string {
	path, err := filepath.Abs(filepath.Join("../../bin", dir))
	if err != nil {
		return ""
	}
	if path, err = filepath.EvalSymlinks(path); err != nil || !exists(filepath.Join(path, file)) {
		return ""
	}
	return path
}

// machine is the host as the tests see it: the box.
type machine struct {
	t          *testing.T
	cfg        Config
	cri        *cri.Client
	clock      clock.Clock
	grace      time.Duration // grace period of its pods
	force      chan struct{}
	supervisor *Supervisor // started last
}

type (
	sandboxFilter = runtimeapi.PodSandboxFilter
	sandboxItem   = runtimeapi.PodSandbox
)

func newMachine(t *testing.T) *machine {
	t.Helper()
	paths, err := NewPaths(t.TempDir(), "/run/swiftlet", bundle())
	if err != nil {
		t.Fatal(err)
	}
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: paths.Socket(), RequestTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return &machine{t: t, cri: client, clock: clock.RealClock{}, grace: 10 * time.Second, force: make(chan struct{}), cfg: Config{
		Paths: paths, Manifests: t.TempDir(), ImageDirs: []string{images()},
		PodCIDR: netip.MustParsePrefix("10.88.0.0/16"), NodeName: "box", Port: 10250, HealthzPort: 10248, AnyBundle: true,
	}}
}

// up runs a Supervisor with the given agent in place of the real one. It returns a function that
// stops the Supervisor and waits for it.
func (m *machine) up(agent func(ctx context.Context, run AgentRun) error) (down func() error) {
	m.t.Helper()
	supervisor, err := New(m.cfg, Deps{
		Log: slog.New(slog.NewTextHandler(m.t.Output(), nil)), Clock: m.clock, Runtime: m.cri,
		Agent: agent, Out: m.t.Output(), ForceStop: m.force,
	})
	if err != nil {
		m.t.Fatal(err)
	}
	m.supervisor = supervisor
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	supervisor.deps.Agent = func(ctx context.Context, run AgentRun) error {
		close(ready)
		return agent(ctx, run)
	}
	go func() { ended <- supervisor.Run(ctx) }()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		m.t.Fatalf("up: %v\n%s", err, m.runtimeLog())
	}
	return func() error { cancel(); return <-ended }
}

func (m *machine) runtimeLog() string {
	content, _ := os.ReadFile(m.cfg.Paths.containerdLog())
	return string(content)
}

// idleAgent does nothing until it is stopped or drained.
func idleAgent(ctx context.Context, run AgentRun) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-run.Drain:
		return nil
	}
}

// runPod starts a pod with one container of the example image that serves HTTP on a host port.
func (m *machine) runPod(name string, hostPort int32) (sandbox, container string) {
	m.t.Helper()
	logs := filepath.Join(m.cfg.Paths.PodLogs(), name)
	if err := os.MkdirAll(logs, 0o755); err != nil {
		m.t.Fatal(err)
	}
	config := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: name},
		Labels:       map[string]string{labelPodName: name},
		LogDirectory: logs,
		PortMappings: []*runtimeapi.PortMapping{{ContainerPort: 8080, HostPort: hostPort}},
		Linux:        &runtimeapi.LinuxPodSandboxConfig{CgroupParent: "/" + cgroupName + "/" + name},
	}
	ctx := m.t.Context()
	sandbox, err := m.cri.RunPodSandbox(ctx, config, "")
	if err != nil {
		m.t.Fatalf("%v\n%s", err, m.runtimeLog())
	}
	container, err = m.cri.CreateContainer(ctx, sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "server"},
		Image:    &runtimeapi.ImageSpec{Image: "docker.io/swiftlet/example:1"},
		Args:     []string{"serve", ":8080", "/tmp"}, LogPath: "server.log",
		Annotations: map[string]string{annotationGrace: strconv.Itoa(int(m.grace.Seconds()))},
		Linux:       &runtimeapi.LinuxContainerConfig{},
	}, config)
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.cri.StartContainer(ctx, container); err != nil {
		m.t.Fatal(err)
	}
	return sandbox, container
}

// hostTraces lists everything that pods leave on a host and teardown must remove.
func hostTraces(t *testing.T) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for name, command := range map[string]string{
		"mounts":     "cut -d' ' -f5 /proc/self/mountinfo | sort",
		"interfaces": "ls /sys/class/net",
		"tables":     "/usr/sbin/nft list tables",
		"rules":      "/usr/sbin/nft list ruleset | grep -vE '^\\s*(table|chain|type|})' || true",
		"iptables":   "iptables-save | grep -E '^(-A|:CNI)' || true",
		"cgroups":    "find /sys/fs/cgroup -type d | sort",
		"netns":      "lsns -t net -n -o NS 2>/dev/null | sort -u",
		"run":        "ls /run",
		"cni":        "ls /var/lib/cni/results 2>/dev/null || true",
		"forwarding": "cat /proc/sys/net/ipv4/ip_forward",
		// The processes of this command itself do not count.
		"processes": "for p in /proc/[0-9]*; do [ -e $p/exe ] && readlink $p/exe; done | grep -E 'bundle|containerd|pause|example' || true",
	} {
		out, err := exec.Command("sh", "-c", command).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		seen[name] = strings.TrimSpace(string(out))
	}
	return seen
}

var errNotYet = errors.New("not yet")

// runExpectingFailure runs a Supervisor that must fail before it starts its agent.
func (m *machine) runExpectingFailure() error {
	m.t.Helper()
	supervisor, err := New(m.cfg, Deps{
		Log: slog.New(slog.DiscardHandler), Clock: clock.RealClock{}, Runtime: m.cri, Out: m.t.Output(),
		Agent: func(context.Context, AgentRun) error { m.t.Error("the agent was started"); return nil },
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return supervisor.Run(m.t.Context())
}
