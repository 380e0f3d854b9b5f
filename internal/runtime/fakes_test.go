package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/cri"
	"swiftlet/internal/volume/safepath"
)

// callLog is a CRI that records its calls as text. Faults of a whole runtime are tested with
// test/fakecri.
type callLog struct {
	mu    sync.Mutex
	calls []string
	// fail makes the call with this text fail.
	fail map[string]error
	exec func(ctx context.Context, command []string) (cri.ExecResult, error)
}

func (f *callLog) record(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	call := fmt.Sprintf(format, args...)
	f.calls = append(f.calls, call)
	return f.fail[call]
}

func (f *callLog) RunPodSandbox(_ context.Context, c *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	return "sandbox", f.record("run %s %s", c.Metadata.Name, handler)
}
func (f *callLog) SandboxIPs(context.Context, string) ([]string, error) {
	return []string{"10.0.0.1"}, nil
}
func (f *callLog) StopPodSandbox(_ context.Context, id string) error {
	return f.record("stop sandbox %s", id)
}
func (f *callLog) RemovePodSandbox(_ context.Context, id string) error {
	return f.record("remove sandbox %s", id)
}
func (f *callLog) CreateContainer(_ context.Context, sandbox string, c *runtimeapi.ContainerConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	return "id-" + c.Metadata.Name, f.record("create %s in %s", c.Metadata.Name, sandbox)
}
func (f *callLog) StartContainer(_ context.Context, id string) error { return f.record("start %s", id) }
func (f *callLog) StopContainer(_ context.Context, id string, grace time.Duration) error {
	return f.record("stop %s %s", id, grace)
}
func (f *callLog) RemoveContainer(_ context.Context, id string) error {
	return f.record("remove %s", id)
}
func (f *callLog) UpdatePodSandboxResources(_ context.Context, id string, _, r *runtimeapi.LinuxContainerResources) error {
	return f.record("update sandbox %s shares %d quota %d memory %d", id, r.CpuShares, r.CpuQuota, r.MemoryLimitInBytes)
}
func (f *callLog) UpdateContainerResources(_ context.Context, id string, r *runtimeapi.LinuxContainerResources) error {
	return f.record("update %s shares %d quota %d memory %d", id, r.CpuShares, r.CpuQuota, r.MemoryLimitInBytes)
}
func (f *callLog) ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (cri.ExecResult, error) {
	if err := f.record("exec %s %v %s", id, command, timeout); err != nil {
		return cri.ExecResult{}, err
	}
	if f.exec != nil {
		return f.exec(ctx, command)
	}
	return cri.ExecResult{}, nil
}

// fakeDNS returns fixed names.
type fakeDNS struct{ hostsErr error }

func (fakeDNS) PodDNS(p *v1.Pod) (*runtimeapi.DNSConfig, error) {
	return &runtimeapi.DNSConfig{
		Servers:  []string{"10.96.0.10"},
		Searches: []string{p.Namespace + ".svc.cluster.local", "svc.cluster.local", "cluster.local"},
		Options:  []string{"ndots:5"},
	}, nil
}

func (fakeDNS) KernelHostname(p *v1.Pod) (string, error) {
	switch {
	case p.Spec.HostNetwork:
		return "", nil
	case p.Spec.Hostname != "":
		return p.Spec.Hostname, nil
	}
	return p.Name, nil
}

func (d fakeDNS) EnsureHosts(path string, _ *v1.Pod, ips []string) error {
	if d.hostsErr != nil {
		return d.hostsErr
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(fmt.Sprint(ips)), 0o644)
}

// fakeEvents records events as "fieldPath type reason message".
type fakeEvents struct {
	mu  sync.Mutex
	all []string
}

func (f *fakeEvents) Eventf(o apiruntime.Object, kind, reason, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, o.(*v1.ObjectReference).FieldPath+" "+kind+" "+reason+" "+fmt.Sprintf(format, args...))
}

// fakeSources has objects by namespace/name.
type fakeSources struct {
	configMaps, secrets map[string]map[string]string
	services            []*v1.Service
	synced              bool
	err                 error
	reads               int
}

func (f *fakeSources) ConfigMap(_ context.Context, namespace, name string) (*v1.ConfigMap, error) {
	f.reads++
	data, ok := f.configMaps[namespace+"/"+name]
	if f.err != nil || !ok {
		return nil, fmt.Errorf("read config map: %w", errors.Join(f.err, apierrors.NewNotFound(v1.Resource("configmap"), name)))
	}
	return &v1.ConfigMap{Data: data}, nil
}

func (f *fakeSources) Secret(_ context.Context, namespace, name string) (*v1.Secret, error) {
	f.reads++
	data, ok := f.secrets[namespace+"/"+name]
	if f.err != nil || !ok {
		return nil, apierrors.NewNotFound(v1.Resource("secret"), name)
	}
	s := &v1.Secret{Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	return s, nil
}

func (f *fakeSources) Services(namespace string) (found []*v1.Service, synced bool) {
	for _, s := range f.services {
		if s.Namespace == namespace {
			found = append(found, s)
		}
	}
	return found, f.synced
}

// bench is a Runtime on fakes with temporary directories.
type bench struct {
	*Runtime
	cri    *callLog
	events *fakeEvents
	clock  *clocktesting.FakeClock
}

func newBench(t *testing.T, edit func(*Config, *Deps)) *bench {
	t.Helper()
	dir := t.TempDir()
	sys := filepath.Join(dir, "sys")
	for _, size := range []string{"hugepages-1048576kB", "hugepages-2048kB"} {
		if err := os.MkdirAll(filepath.Join(sys, "kernel/mm/hugepages", size), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{cri: &callLog{fail: map[string]error{}}, events: &fakeEvents{}, clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	cfg := Config{
		RootDir: filepath.Join(dir, "kubelet"), PodLogsDir: filepath.Join(dir, "pods"), ContainerLogsDir: filepath.Join(dir, "containers"),
		SysDir: sys, SeccompRoot: "/var/lib/kubelet/seccomp", CPUQuota: true, CPUPeriod: 100 * time.Millisecond,
		MemoryCapacity: 24682416 << 10, Swap: Swap{Controller: true},
	}
	deps := Deps{
		CRI: b.cri, DNS: fakeDNS{}, Events: b.events, Log: slog.New(slog.DiscardHandler), Clock: b.clock,
		Random:  func() uint32 { return 0xabc },
		LogTail: func(string, int, int) ([]byte, error) { return nil, errors.New("no log") }, RemoveTree: safepath.RemoveAll,
	}
	if edit != nil {
		edit(&cfg, &deps)
	}
	r, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	b.Runtime = r
	return b
}

// newGolden returns a Runtime with the configuration of the recorded kubelet.
func newGolden(t *testing.T) *Runtime {
	return newBench(t, func(c *Config, _ *Deps) {
		c.RootDir, c.PodLogsDir, c.ContainerLogsDir = "/var/lib/kubelet", "/var/log/pods", "/var/log/containers"
	}).Runtime
}
