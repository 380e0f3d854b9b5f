package e2e

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/dockerbox"
	"swiftlet/cri-docker/internal/labels"
)

// TestNothingIsForgotten: after SIGKILL the server says the same of everything.
func TestNothingIsForgotten(t *testing.T) {
	s := ownShim(t)
	p := runPod(t, s)
	id := p.run("c", "sleep 1000")
	done := p.run("done", "exit 3")
	p.exited(done)
	read := func() []proto.Message {
		pod, err := s.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: p.id})
		if err != nil {
			t.Fatal(err)
		}
		pod.Timestamp = 0
		return []proto.Message{pod, p.containerStatus(id), p.containerStatus(done)}
	}
	before := read()
	s.restart(t)
	for i, after := range read() {
		if !proto.Equal(before[i], after) {
			t.Errorf("before\n%v\nafter\n%v", before[i], after)
		}
	}
	if got := p.exec(id, "echo", "alive"); got != "alive\n" {
		t.Errorf("exec: %q", got)
	}
}

// TestKilledWhileStarting: whenever the server dies, a repeated request leads to one running sandbox, and no
// address is lost.
func TestKilledWhileStarting(t *testing.T) {
	s := ownShim(t)
	config := podConfig(t)
	for attempt := range 6 {
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		asked := s.RuntimeServiceClient
		go func() {
			_, err := asked.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config})
			result <- err
		}()
		docker, err := box.Docker()
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the pause container", func() bool {
			c, err := docker.ContainerInspect(t.Context(), labels.SandboxName(config), client.ContainerInspectOptions{})
			return err == nil && (attempt%2 == 0 || c.Container.State.Running)
		})
		_ = docker.Close() // nothing is pending
		s.restart(t)
		cancel()
		<-result
		if attempt < 5 {
			config.Metadata.Attempt += uint32(attempt % 2) // the same attempt again, or the next
		}
	}
	// What is there is listed, and can be removed.
	list, err := s.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: config.Labels}})
	if err != nil || len(list.GetItems()) == 0 {
		t.Fatalf("list: %v, %v; want sandboxes", list, err)
	}
	for _, item := range list.GetItems() {
		if _, err := s.RemovePodSandbox(t.Context(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: item.GetId()}); err != nil {
			t.Error(err)
		}
	}
	config.Metadata.Attempt++
	p := runPod(t, s, func(c *runtimeapi.PodSandboxConfig) { c.Metadata.Attempt = config.Metadata.Attempt })
	if got := p.status(); got.GetState() != runtimeapi.PodSandboxState_SANDBOX_READY {
		t.Errorf("sandbox is %s", got.GetState())
	}
}

// TestForeignContainers: a container that was started by hand does not exist for the CRI, whatever its labels.
func TestForeignContainers(t *testing.T) {
	p := runPod(t, shared)
	docker, err := box.Docker()
	if err != nil {
		t.Fatal(err)
	}
	defer docker.Close()
	pause, err := docker.ContainerInspect(t.Context(), p.id, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	forged, err := docker.ContainerCreate(t.Context(), client.ContainerCreateOptions{Name: "forged", Config: &container.Config{
		Image: dockerbox.Busybox, Labels: pause.Container.Config.Labels}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := docker.ContainerRemove(context.Background(), forged.ID, client.ContainerRemoveOptions{}); err != nil {
			t.Error(err)
		}
	})
	list, err := shared.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: p.config.Labels}})
	if err != nil || len(list.GetItems()) != 1 || list.GetItems()[0].GetId() != p.id {
		t.Errorf("list: %v, %v; want only the real sandbox", list, err)
	}
	if _, err := shared.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: forged.ID}); err == nil {
		t.Error("a forged sandbox has a status")
	}
}

// TestDockerIsKilled: containers survive, and a client of the event stream learns that it has to list again.
func TestDockerIsKilled(t *testing.T) {
	s := ownShim(t)
	p := runPod(t, s)
	id := p.run("c", "echo before; sleep 1000")
	stream, err := s.GetContainerEvents(t.Context(), &runtimeapi.GetEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Header(); err != nil {
		t.Fatal(err)
	}
	if err := box.KillDocker(t.Context()); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = stream.Recv()
	}
	answer, err := s.Status(t.Context(), &runtimeapi.StatusRequest{})
	if err != nil || answer.GetStatus().GetConditions()[0].GetStatus() {
		t.Errorf("status without Docker: %v, %v; want not ready", answer, err)
	}
	if err := box.StartDocker(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := p.containerStatus(id); got.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("container is %s; want running", got.GetState())
	}
	next := follow(t, s)
	other := p.run("other", "echo x")
	for next().GetContainerId() != other {
	}
}

// TestRemovedByHand: `docker rm -f` of a pause container frees the pod's address, now or at the next start.
func TestRemovedByHand(t *testing.T) {
	s := ownShim(t)
	docker, err := box.Docker()
	if err != nil {
		t.Fatal(err)
	}
	defer docker.Close()
	for _, running := range []bool{true, false} {
		p := runPod(t, s)
		ip := p.status().GetNetwork().GetIp()
		if !running {
			s.process.Kill()
		}
		if _, err := docker.ContainerRemove(t.Context(), p.id, client.ContainerRemoveOptions{Force: true}); err != nil {
			t.Fatal(err)
		}
		if !running {
			s.startAgain(t)
		}
		eventually(t, "release of the address", func() bool {
			text, err := os.ReadFile(box.Path("ipam/pod-net/" + ip))
			return os.IsNotExist(err) || !strings.Contains(string(text), p.id)
		})
	}
}
