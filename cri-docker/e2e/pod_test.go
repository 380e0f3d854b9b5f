package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/dockerbox"
)

// pod is a sandbox of one test.
type pod struct {
	t      *testing.T
	shim   *shim
	id     string
	config *runtimeapi.PodSandboxConfig
}

func podConfig(t *testing.T) *runtimeapi.PodSandboxConfig {
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	return &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "test", Uid: name},
		Hostname:     "host-of-" + name[max(0, len(name)-40):],
		LogDirectory: box.Path("logs/" + name),
		Labels:       map[string]string{"io.kubernetes.pod.name": name, "io.kubernetes.pod.uid": name},
		Annotations:  map[string]string{"note": "a"},
		DnsConfig:    &runtimeapi.DNSConfig{Servers: []string{"10.0.0.10"}, Searches: []string{"svc.cluster.local"}, Options: []string{"ndots:5"}},
		Linux: &runtimeapi.LinuxPodSandboxConfig{CgroupParent: "/kubepods/pod" + name,
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}}},
	}
}

// runPod runs a sandbox that is removed with the test.
func runPod(t *testing.T, s *shim, change ...func(*runtimeapi.PodSandboxConfig)) *pod {
	t.Helper()
	config := podConfig(t)
	for _, c := range change {
		c(config)
	}
	answer, err := s.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		showLog(t, s.name)
		t.Fatal(err)
	}
	p := &pod{t: t, shim: s, id: answer.GetPodSandboxId(), config: config}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := s.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.id}); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *pod) status() *runtimeapi.PodSandboxStatus {
	p.t.Helper()
	answer, err := p.shim.PodSandboxStatus(p.t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: p.id})
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.GetStatus()
}

func containerConfig(name, script string) *runtimeapi.ContainerConfig {
	return &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name},
		Image:    &runtimeapi.ImageSpec{Image: dockerbox.Busybox},
		Command:  []string{"sh", "-c", script},
		Labels:   map[string]string{"io.kubernetes.container.name": name},
		LogPath:  name + "/0.log",
		Linux:    &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{}, SecurityContext: &runtimeapi.LinuxContainerSecurityContext{}},
	}
}

// run creates and starts a container that runs a shell script.
func (p *pod) run(name, script string, change ...func(*runtimeapi.ContainerConfig)) string {
	p.t.Helper()
	id := p.create(name, script, change...)
	if _, err := p.shim.StartContainer(p.t.Context(), &runtimeapi.StartContainerRequest{ContainerId: id}); err != nil {
		p.t.Fatal(err)
	}
	return id
}

func (p *pod) create(name, script string, change ...func(*runtimeapi.ContainerConfig)) string {
	p.t.Helper()
	config := containerConfig(name, script)
	security := config.Linux.SecurityContext
	security.NamespaceOptions = p.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	for _, c := range change {
		c(config)
	}
	answer, err := p.shim.CreateContainer(p.t.Context(), &runtimeapi.CreateContainerRequest{PodSandboxId: p.id, Config: config, SandboxConfig: p.config})
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.GetContainerId()
}

func (p *pod) containerStatus(id string) *runtimeapi.ContainerStatus {
	p.t.Helper()
	answer, err := p.shim.ContainerStatus(p.t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.GetStatus()
}

// exited waits until a container has exited.
func (p *pod) exited(id string) *runtimeapi.ContainerStatus {
	p.t.Helper()
	var s *runtimeapi.ContainerStatus
	eventually(p.t, "exit of container", func() bool {
		s = p.containerStatus(id)
		return s.GetState() == runtimeapi.ContainerState_CONTAINER_EXITED
	})
	return s
}

// exec runs a command and returns its output.
func (p *pod) exec(id string, command ...string) string {
	p.t.Helper()
	answer, err := p.shim.ExecSync(p.t.Context(), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: command, Timeout: 60})
	if err != nil {
		p.t.Fatalf("%q: %v", command, err)
	}
	if answer.GetExitCode() != 0 {
		p.t.Fatalf("%q: exit code %d: %s%s", command, answer.GetExitCode(), answer.GetStdout(), answer.GetStderr())
	}
	return string(answer.GetStdout())
}

// output is the text of a container's log, without times.
func (p *pod) output(name string) string {
	p.t.Helper()
	return textOf(p.t, filepath.Join(p.config.LogDirectory, name, "0.log"))
}

func textOf(t *testing.T, log string) string {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(data)) {
		_, rest, _ := strings.Cut(line, " ")
		b.WriteString(rest)
	}
	return b.String()
}
