package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestManyPodsAcrossKills starts 30 pods at the same time while the server is killed, and retries what failed, as
// a kubelet does. All run in the end, each sandbox with an address of its own, and all can be removed.
func TestManyPodsAcrossKills(t *testing.T) {
	const pods, kills = 30, 3
	s := ownShim(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var group sync.WaitGroup
	for i := range pods {
		group.Go(func() {
			for attempt := uint32(0); ctx.Err() == nil; attempt++ {
				if runOne(ctx, s, manyConfig(t, i, attempt)) == nil {
					return
				}
			}
		})
	}
	for range kills {
		before := len(readyPods(t, s))
		eventually(t, "progress", func() bool { return len(readyPods(t, s)) > before || before == pods })
		s.process.Kill()
		if err := s.start(); err != nil { // calls of the connection wait for it
			t.Fatal(err)
		}
	}
	group.Wait()
	ips := map[string]string{}
	for _, p := range readyPods(t, s) {
		status, err := s.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: p.GetId()})
		if err != nil {
			t.Fatal(err)
		}
		ip := status.GetStatus().GetNetwork().GetIp()
		if other := ips[ip]; ip == "" || other != "" {
			t.Errorf("pods %s and %s have the address %q", other, p.GetMetadata().GetUid(), ip)
		}
		ips[ip] = p.GetMetadata().GetUid()
	}
	if len(ips) < pods {
		t.Errorf("%d pods run; want %d", len(ips), pods)
	}
	all, err := s.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"many": t.Name()}}})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, p := range all.GetItems() {
		group.Go(func() {
			if _, err := s.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.GetId()}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	t.Logf("removed %d sandboxes in %s", len(all.GetItems()), time.Since(began))
}

func manyConfig(t *testing.T, i int, attempt uint32) *runtimeapi.PodSandboxConfig {
	config := podConfig(t)
	config.Metadata.Uid, config.Metadata.Attempt = fmt.Sprintf("many-%d", i), attempt
	config.Labels = map[string]string{"many": t.Name()}
	config.LogDirectory = box.Path("logs/" + config.Metadata.Uid)
	return config
}

// runOne starts a pod with one container.
func runOne(ctx context.Context, s *shim, config *runtimeapi.PodSandboxConfig) error {
	pod, err := s.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		return err
	}
	created, err := s.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: pod.GetPodSandboxId(), Config: containerConfig("c", "sleep 1000"), SandboxConfig: config})
	if err != nil {
		return err
	}
	_, err = s.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: created.GetContainerId()})
	return err
}

func readyPods(t *testing.T, s *shim) []*runtimeapi.PodSandbox {
	t.Helper()
	var list *runtimeapi.ListPodSandboxResponse
	eventually(t, "an answer", func() bool {
		var err error
		list, err = s.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{
			LabelSelector: map[string]string{"many": t.Name()}, State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY}}})
		return err == nil
	})
	return list.GetItems()
}
