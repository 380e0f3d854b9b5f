package e2e

import (
	"context"
	"slices"
	"testing"

	"github.com/moby/moby/client"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func running(t *testing.T, docker *client.Client, id string) bool {
	t.Helper()
	c, err := docker.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Container.State.Running
}

// follow collects events of one pod.
func follow(t *testing.T, s *shim) (next func() *runtimeapi.ContainerEventResponse) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	stream, err := s.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Header(); err != nil { // now no event is missed
		t.Fatal(err)
	}
	return func() *runtimeapi.ContainerEventResponse {
		t.Helper()
		for {
			event, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if event.GetPodSandboxStatus().GetMetadata().GetUid() == podConfig(t).Metadata.Uid {
				return event
			}
		}
	}
}

// TestEvents: each carries the pod's whole status as it was at that time or later, to every client.
func TestEvents(t *testing.T) {
	next, second := follow(t, shared), follow(t, shared)
	p := runPod(t, shared)
	expect := func(id string, kind runtimeapi.ContainerEventType) *runtimeapi.ContainerEventResponse {
		t.Helper()
		event := next()
		if event.GetContainerId() != id || event.GetContainerEventType() != kind {
			t.Fatalf("event %s of %s; want %s of %s", event.GetContainerEventType(), event.GetContainerId(), kind, id)
		}
		return event
	}
	expect(p.id, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	if e := expect(p.id, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT); e.GetPodSandboxStatus().GetState() != runtimeapi.PodSandboxState_SANDBOX_READY ||
		e.GetPodSandboxStatus().GetNetwork().GetIp() == "" {
		t.Errorf("a started sandbox is %v", e.GetPodSandboxStatus())
	}
	id := p.run("c", "exit 3")
	p.exited(id)
	expect(id, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	expect(id, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	stopped := expect(id, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	if len(stopped.GetContainersStatuses()) != 1 || stopped.GetContainersStatuses()[0].GetExitCode() != 3 {
		t.Errorf("statuses %v; want the container with code 3", stopped.GetContainersStatuses())
	}
	if _, err := shared.RemoveContainer(t.Context(), &runtimeapi.RemoveContainerRequest{ContainerId: id}); err != nil {
		t.Fatal(err)
	}
	if e := expect(id, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT); len(e.GetContainersStatuses()) != 0 {
		t.Errorf("statuses %v; want none", e.GetContainersStatuses())
	}
	if _, err := shared.RemovePodSandbox(t.Context(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.id}); err != nil {
		t.Fatal(err)
	}
	expect(p.id, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	if e := expect(p.id, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT); e.GetPodSandboxStatus().GetState() != runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
		t.Errorf("a removed sandbox is %v", e.GetPodSandboxStatus())
	}
	var kinds []runtimeapi.ContainerEventType
	for range 8 {
		kinds = append(kinds, second().GetContainerEventType())
	}
	if want := []runtimeapi.ContainerEventType{0, 1, 0, 1, 2, 3, 2, 3}; !slices.Equal(kinds, want) {
		t.Errorf("the second client got %v; want %v", kinds, want)
	}
}

// TestStats: usage of a busy container and its pod.
func TestStats(t *testing.T) {
	p := runPod(t, shared)
	id := p.run("busy", "head -c 3000000 /dev/zero > /file; while true; do :; done")
	var s *runtimeapi.ContainerStats
	eventually(t, "usage", func() bool {
		answer, err := shared.ContainerStats(t.Context(), &runtimeapi.ContainerStatsRequest{ContainerId: id})
		if err != nil {
			t.Fatal(err)
		}
		s = answer.GetStats()
		return s.GetCpu().GetUsageCoreNanoSeconds().GetValue() > 0 && s.GetMemory().GetWorkingSetBytes().GetValue() > 0
	})
	if s.GetAttributes().GetMetadata().GetName() != "busy" || s.GetWritableLayer() == nil {
		t.Errorf("stats %v", s)
	}
	answer, err := shared.ListPodSandboxStats(t.Context(), &runtimeapi.ListPodSandboxStatsRequest{Filter: &runtimeapi.PodSandboxStatsFilter{Id: p.id}})
	if err != nil || len(answer.GetStats()) != 1 {
		t.Fatalf("stats of pods: %v, %v", answer, err)
	}
	pod := answer.GetStats()[0].GetLinux()
	if len(pod.GetContainers()) != 1 || pod.GetCpu().GetUsageCoreNanoSeconds().GetValue() < s.GetCpu().GetUsageCoreNanoSeconds().GetValue() ||
		pod.GetProcess().GetProcessCount().GetValue() < 2 || pod.GetNetwork().GetDefaultInterface().GetName() != "eth0" {
		t.Errorf("stats of the pod: %v", pod)
	}
	fs, err := shared.images.ImageFsInfo(t.Context(), &runtimeapi.ImageFsInfoRequest{})
	if err != nil || len(fs.GetImageFilesystems()) != 1 || fs.GetImageFilesystems()[0].GetUsedBytes().GetValue() < 1<<20 {
		t.Errorf("image file system: %v, %v", fs, err)
	}
}
