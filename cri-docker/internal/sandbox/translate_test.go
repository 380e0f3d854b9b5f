package sandbox

import (
	"io"
	"log/slog"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/container"
	"swiftlet/cri-docker/internal/host"
	"swiftlet/cri-docker/internal/labels"
)

func TestTranslate(t *testing.T) {
	limits, err := host.ReadLimits(slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	config := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "p"}, Hostname: "h", Linux: &runtimeapi.LinuxPodSandboxConfig{
		CgroupParent: "/kubepods.slice/kubepods-podx.slice", Sysctls: map[string]string{"net.core.somaxconn": "5"},
		SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{}},
	}}
	c, h, err := translate(labels.Sandbox{Config: config, Handler: "runsc"}, "pause", "systemd", container.Abilities{Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	if c.Hostname != "h" || h.NetworkMode != "none" || h.IpcMode != "shareable" || h.CgroupParent != "kubepods-podx.slice" ||
		h.Runtime != "runsc" || h.Sysctls["net.core.somaxconn"] != "5" {
		t.Errorf("pause container %+v %+v", c, h)
	}
	config.Linux.SecurityContext.NamespaceOptions = &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE, Ipc: runtimeapi.NamespaceMode_NODE}
	if c, h, err = translate(labels.Sandbox{Config: config}, "pause", "cgroupfs", container.Abilities{Limits: limits}); err != nil {
		t.Fatal(err)
	}
	if c.Hostname != "" || h.NetworkMode != "host" || h.UTSMode != "host" || h.IpcMode != "host" {
		t.Errorf("pause container of the node's namespaces %+v %+v", c, h)
	}
}

func TestResolvConf(t *testing.T) {
	for want, dns := range map[string]*runtimeapi.DNSConfig{
		"": {},
		"search a b\nnameserver 1.1.1.1\nnameserver 2.2.2.2\noptions x y\n": {Servers: []string{"1.1.1.1", "2.2.2.2"}, Searches: []string{"a", "b"}, Options: []string{"x", "y"}},
	} {
		if got := resolvConf(dns); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
