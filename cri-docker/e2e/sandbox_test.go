package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestSandbox: a pod with an address, DNS and two containers that share its network.
func TestSandbox(t *testing.T) {
	p := runPod(t, shared)
	s := p.status()
	if s.GetState() != runtimeapi.PodSandboxState_SANDBOX_READY || !strings.HasPrefix(s.GetNetwork().GetIp(), "10.77.0.") {
		t.Errorf("status %v; want a ready sandbox with an address", s)
	}
	if s.GetAnnotations()["note"] != "a" || s.GetMetadata().GetUid() != p.config.Metadata.Uid {
		t.Errorf("status %v does not have what was asked for", s)
	}
	web := p.run("web", "echo pod > /tmp/index.html; httpd -f -p 8080 -h /tmp")
	other := p.run("other", "sleep 1000")
	eventually(t, "the web server", func() bool {
		answer, err := shared.ExecSync(t.Context(), &runtimeapi.ExecSyncRequest{ContainerId: other, Cmd: []string{"wget", "-qO-", "http://127.0.0.1:8080"}, Timeout: 10})
		return err == nil && string(answer.GetStdout()) == "pod\n"
	})
	if got := p.exec(web, "hostname"); strings.TrimSpace(got) != p.config.Hostname {
		t.Errorf("host name %q; want %q", got, p.config.Hostname)
	}
	if got, want := p.exec(web, "cat", "/etc/resolv.conf"), "search svc.cluster.local\nnameserver 10.0.0.10\noptions ndots:5\n"; got != want {
		t.Errorf("resolv.conf %q; want %q", got, want)
	}
	if got := p.exec(web, "cat", "/proc/self/cgroup"); !strings.Contains(got, p.config.Linux.CgroupParent+"/") {
		t.Errorf("cgroups %s; want below %s", got, p.config.Linux.CgroupParent)
	}
	list, err := shared.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{
		LabelSelector: p.config.Labels, State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY}}})
	if err != nil || len(list.GetItems()) != 1 || list.GetItems()[0].GetId() != p.id {
		t.Errorf("list: %v, %v; want this pod", list, err)
	}
}

// TestStopSandbox: stopping disconnects the network once, may be repeated, and leaves the containers' records.
func TestStopSandbox(t *testing.T) {
	p := runPod(t, shared)
	id := p.run("c", "sleep 1000")
	for range 2 {
		if _, err := shared.StopPodSandbox(t.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: p.id}); err != nil {
			t.Fatal(err)
		}
	}
	if s := p.status(); s.GetState() != runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
		t.Errorf("sandbox is %s; want not ready", s.GetState())
	}
	if s := p.containerStatus(id); s.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED || s.GetExitCode() != 137 {
		t.Errorf("container is %s with code %d; want exited with 137", s.GetState(), s.GetExitCode())
	}
	leases, err := filepath.Glob(box.Path("ipam/pod-net/10.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, lease := range leases {
		if text, _ := os.ReadFile(lease); strings.Contains(string(text), p.id) {
			t.Errorf("address %s is still taken", filepath.Base(lease))
		}
	}
	for range 2 {
		if _, err := shared.RemovePodSandbox(t.Context(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.id}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = shared.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: p.id})
	if status.Code(err) != codes.NotFound {
		t.Errorf("status of removed sandbox: %v; want NotFound", err)
	}
}

func TestHostNetwork(t *testing.T) {
	p := runPod(t, shared, func(c *runtimeapi.PodSandboxConfig) {
		c.Linux.SecurityContext.NamespaceOptions.Network = runtimeapi.NamespaceMode_NODE
	})
	s := p.status()
	if s.GetState() != runtimeapi.PodSandboxState_SANDBOX_READY || s.GetNetwork().GetIp() != "" {
		t.Errorf("status %v; want a ready sandbox without an address of its own", s)
	}
	id := p.run("c", "sleep 1000")
	host, err := box.Command(t.Context(), "readlink", "/proc/self/ns/net").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := p.exec(id, "readlink", "/proc/self/ns/net"); got != string(host) {
		t.Errorf("network namespace %s; want the host's, %s", got, host)
	}
	if got := p.exec(id, "cat", "/etc/resolv.conf"); !strings.Contains(got, "nameserver 10.0.0.10") {
		t.Errorf("resolv.conf %q", got)
	}
}

func TestHostPort(t *testing.T) {
	p := runPod(t, shared, func(c *runtimeapi.PodSandboxConfig) {
		c.PortMappings = []*runtimeapi.PortMapping{{ContainerPort: 8080, HostPort: 18080}}
	})
	p.run("web", "echo through > /tmp/index.html; httpd -f -p 8080 -h /tmp")
	get := func() string {
		out, _ := box.Command(t.Context(), "curl", "-s", "--max-time", "5", "http://10.77.0.1:18080/").Output()
		return string(out)
	}
	eventually(t, "the host port", func() bool { return get() == "through\n" })
	if _, err := shared.StopPodSandbox(t.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: p.id}); err != nil {
		t.Fatal(err)
	}
	if got := get(); got != "" {
		t.Errorf("the host port leads to %q after the pod's end", got)
	}
}

func TestNamespacesOfPod(t *testing.T) {
	p := runPod(t, shared, func(c *runtimeapi.PodSandboxConfig) {
		c.Linux.SecurityContext.NamespaceOptions.Pid = runtimeapi.NamespaceMode_POD
		c.Linux.Sysctls = map[string]string{"kernel.shm_rmid_forced": "1"}
	})
	a, b := p.run("a", "sleep 1001"), p.run("b", "sleep 1002")
	for _, ns := range []string{"net", "ipc", "pid"} {
		if x, y := p.exec(a, "readlink", "/proc/self/ns/"+ns), p.exec(b, "readlink", "/proc/self/ns/"+ns); x != y {
			t.Errorf("namespaces %s and %s; want the same %s", x, y, ns)
		}
	}
	if got := p.exec(a, "ps"); !strings.Contains(got, "sleep 1002") {
		t.Errorf("processes %s; want those of both containers", got)
	}
	if got := p.exec(b, "cat", "/proc/sys/kernel/shm_rmid_forced"); got != "1\n" {
		t.Errorf("sysctl is %q; want 1", got)
	}
	target := p.run("target", "sleep 1003", func(c *runtimeapi.ContainerConfig) {
		c.Linux.SecurityContext.NamespaceOptions = &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}
	})
	debug := p.run("debug", "sleep 1004", func(c *runtimeapi.ContainerConfig) {
		c.Linux.SecurityContext.NamespaceOptions = &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_TARGET, TargetId: target}
	})
	if got := p.exec(debug, "ps"); !strings.Contains(got, "sleep 1003") || strings.Contains(got, "sleep 1001") {
		t.Errorf("processes %s; want those of the target only", got)
	}
}

func TestMissingPauseImage(t *testing.T) {
	s := ownShim(t, "--pause-image=registry.invalid/pause:1")
	_, err := s.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: podConfig(t)})
	if err == nil || !strings.Contains(err.Error(), "pause image registry.invalid/pause:1 is missing and cannot be pulled") {
		t.Errorf("%v; want an error that names the image", err)
	}
}

// TestFailedNetworkLeavesNothing: the kubelet would have to find and remove it.
func TestFailedNetworkLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	config := `{"cniVersion":"1.0.0","name":"broken-net","plugins":[{"type":"missing"}]}`
	if err := os.WriteFile(filepath.Join(dir, "10-x.conflist"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s := ownShim(t, "--cni-conf-dir="+dir)
	before, err := s.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: podConfig(t)})
	if err == nil || !strings.Contains(err.Error(), "attach network broken-net") {
		t.Errorf("%v; want an error that names the network", err)
	}
	after, err := s.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: podConfig(t).Labels}})
	if err != nil || len(after.GetItems()) != 0 {
		t.Errorf("%d sandboxes before; now these are left: %v, %v", len(before.GetItems()), after.GetItems(), err)
	}
}
