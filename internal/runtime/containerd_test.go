package runtime_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"swiftlet/internal/cri"
	"swiftlet/internal/dns"
	"swiftlet/internal/logs"
	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
	"swiftlet/internal/volume/safepath"
	"swiftlet/test/images"
	"swiftlet/test/realcri"
)

const realPod = `
metadata: {name: web, namespace: ns, uid: 6f03c142-d67b-4642-8835-0e7f41afcdd6}
spec:
  dnsPolicy: ClusterFirst
  hostname: alpha
  enableServiceLinks: true
  terminationGracePeriodSeconds: 20
  securityContext: {fsGroup: 2000, supplementalGroups: [4000]}
  containers:
  - name: main
    image: docker.io/library/busybox:1.36
    command: [sh, -c]
    args: ["trap 'exit 0' TERM; grep alpha /etc/hosts; grep nameserver /etc/resolv.conf; id -u; id -G; hostname; grep -i seccomp: /proc/self/status; echo $(GREETING); touch /tmp/started; while :; do sleep 0.05; done"]
    env: [{name: GREETING, value: hello $(NAME)}, {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: GREETING, value: hello $(NAME)}]
    securityContext: {runAsUser: 1000, seccompProfile: {type: RuntimeDefault}, capabilities: {drop: [ALL]}}
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
    lifecycle:
      postStart: {exec: {command: [sh, -c, "until test -e /tmp/started; do sleep 0.05; done"]}}
      preStop: {exec: {command: [sh, -c, "echo -n last words > /dev/termination-log"]}}
  - name: fails
    image: docker.io/library/busybox:1.36
    command: [sh, -c, "echo dying; exit 7"]
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: FallbackToLogsOnError
`

// node is a Runtime on a real containerd.
type node struct {
	*runtime.Runtime
	cri    *cri.Client
	logs   *logs.Reader
	cfg    runtime.Config
	events eventLog
}

type eventLog struct {
	mu  sync.Mutex
	all []string
}

func (e *eventLog) Eventf(o apiruntime.Object, _, reason, format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, o.(*v1.ObjectReference).FieldPath+" "+reason+" "+fmt.Sprintf(format, args...))
}

func newNode(t *testing.T, real *realcri.Runtime) *node {
	t.Helper()
	dir := t.TempDir()
	n := &node{cfg: runtime.Config{
		RootDir: filepath.Join(dir, "kubelet"), PodLogsDir: real.LogDir(), ContainerLogsDir: filepath.Join(dir, "containers"),
		CPUQuota: true, CPUPeriod: 100 * time.Millisecond, MemoryCapacity: 1 << 30,
	}}
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: real.Endpoint(), RequestTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	log := slog.New(slog.DiscardHandler)
	names, err := dns.New(dns.Config{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "cluster.local"},
		dns.Deps{Events: &n.events, Node: &v1.ObjectReference{}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	n.cri = client
	if n.logs, err = logs.New(logs.Config{Dir: n.cfg.PodLogsDir}, logs.Deps{Clock: clock.RealClock{}, Log: log}); err != nil {
		t.Fatal(err)
	}
	n.Runtime, err = runtime.New(n.cfg, runtime.Deps{CRI: client, DNS: names, Events: &n.events, Log: log, Clock: clock.RealClock{}, Random: rand.Uint32, LogTail: n.logs.Tail, RemoveTree: safepath.RemoveAll})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOnContainerd(t *testing.T) {
	real := realcri.Start(t)
	n := newNode(t, real)
	ctx := t.Context()
	p := &v1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(realPod), p); err != nil {
		t.Fatal(err)
	}

	prepared, err := n.PrepareSandbox(ctx, runtime.SandboxRequest{Pod: p, CgroupParent: real.CgroupParent() + "/pod" + string(p.UID), New: true,
		Handler: func(*v1.Pod) (runtime.Handler, error) { return runtime.Handler{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	sandbox, ips, err := n.CreateSandbox(ctx, prepared)
	if err != nil {
		t.Fatal(err)
	}
	status, err := n.cri.PodSandboxStatus(ctx, sandbox, false)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{status.Status.Network.Ip}; !slices.Equal(ips, want) {
		t.Fatalf("addresses %q, want %q", ips, want)
	}
	for i := range p.Spec.Containers {
		n.start(t, p, &p.Spec.Containers[i], sandbox, prepared, ips)
	}

	main := n.container(t, p, "main")
	log, err := n.logs.Tail(main.LogPath, 80, 2048)
	want := ips[0] + "\talpha\nnameserver 10.96.0.10\n1000\n0 2000 4000\nalpha\nSeccomp:\t2\nhello web\n"
	if err != nil || string(log) != want {
		t.Errorf("log %q %v\nwant %q", log, err, want)
	}
	if main.Hash != runtime.ContainerHash(&p.Spec.Containers[0]) {
		t.Errorf("hash %s", main.Hash)
	}

	begin := time.Now()
	if err := n.Stop(ctx, p, runtime.Targets{Containers: []pod.Container{main}}, runtime.StopOptions{PodEnds: true, PodIPs: ips}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("stopping took %s though the container exits on SIGTERM", took)
	}
	for name, want := range map[string]string{"main": "last words", "fails": "dying\n"} {
		c := n.container(t, p, name)
		if got := n.TerminationMessage(&c); got != want || c.State != pod.Exited {
			t.Errorf("%s is %s with %q, want %q", name, c.State, got, want)
		}
		if err := n.Remove(ctx, pod.RefOf(p), runtime.Targets{Containers: []pod.Container{c}}, runtime.DeleteLogs); err != nil {
			t.Error(err)
		}
	}
	if err := n.Remove(ctx, pod.RefOf(p), runtime.Targets{Sandboxes: []pod.Sandbox{{ID: sandbox}}}, runtime.DeleteLogs); err != nil {
		t.Fatal(err)
	}
	if err := n.RemoveLogs(pod.RefOf(p)); err != nil {
		t.Fatal(err)
	}
	n.checkNothingLeft(t, p)
}

// start creates and starts a container as podsync would.
func (n *node) start(t *testing.T, p *v1.Pod, c *v1.Container, sandboxID string, sandbox *runtime.Sandbox, ips []string) {
	t.Helper()
	ctx := t.Context()
	image, err := n.cri.ImageStatus(ctx, &runtimeapi.ImageSpec{Image: images.Busybox}, false)
	if err != nil {
		t.Fatal(err)
	}
	envs, err := runtime.Environment(ctx, runtime.EnvInput{Pod: p, Container: c, PodIPs: ips}, noSources{})
	if err != nil {
		t.Fatal(err)
	}
	prepared, err := n.PrepareContainer(ctx, p, c, func() (runtime.Input, error) {
		return runtime.Input{Pod: p, Container: c, ImageRef: image.Id, PodIPs: ips, Envs: envs, Sandbox: sandbox, SandboxID: sandboxID, HostsIPs: ips}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	id, err := n.CreateContainer(ctx, prepared)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.StartContainer(ctx, p, c, id, 0, ips); err != nil {
		t.Fatal(err)
	}
}

// container reads the pod's container from the runtime. It waits until the failing one has
// exited.
func (n *node) container(t *testing.T, p *v1.Pod, name string) pod.Container {
	t.Helper()
	for {
		all, err := n.cri.ListContainers(t.Context(), &runtimeapi.ContainerFilter{LabelSelector: map[string]string{
			cri.LabelPodUID: string(p.UID), cri.LabelContainerName: name}})
		if err != nil || len(all) != 1 {
			t.Fatalf("containers %v %v", all, err)
		}
		status, err := n.cri.ContainerStatus(t.Context(), all[0].Id, false)
		if err != nil {
			t.Fatal(err)
		}
		c := cri.ContainerFrom(status.Status)
		if name != "fails" || c.State == pod.Exited {
			return c
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (n *node) checkNothingLeft(t *testing.T, p *v1.Pod) {
	t.Helper()
	var left []string
	for _, dir := range []string{n.cfg.PodLogsDir, n.cfg.ContainerLogsDir, filepath.Join(n.cfg.RootDir, "pods", string(p.UID), "containers")} {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				left = append(left, path)
			}
			return nil
		})
	}
	if len(left) != 0 {
		t.Errorf("files left: %v", left)
	}
	for _, reason := range []string{"{main} Created", "{main} Started", "{fails} Started", "{main} Killing Stopping container main"} {
		if !slices.ContainsFunc(n.events.all, func(e string) bool { return strings.Contains(e, reason) }) {
			t.Errorf("no event %q in %q", reason, n.events.all)
		}
	}
}

// noSources has no objects.
type noSources struct{}

func (noSources) ConfigMap(context.Context, string, string) (*v1.ConfigMap, error) { panic("unused") }
func (noSources) Secret(context.Context, string, string) (*v1.Secret, error)       { panic("unused") }
func (noSources) Services(string) ([]*v1.Service, bool)                            { return nil, true }
