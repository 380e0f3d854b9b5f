package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// soakFault kills something and, unless another program does, starts it again.
type soakFault struct {
	name string
	run  func(*soak, context.Context) error
}

var soakFaults = []soakFault{
	{"agent", func(s *soak, ctx context.Context) error {
		if err := s.node.KillKubelet(); err != nil {
			return err
		}
		return s.startAgent(ctx)
	}},
	{"containerd", func(s *soak, ctx context.Context) error {
		if err := s.node.KillContainerd(); err != nil {
			return err
		}
		return s.node.StartContainerd(ctx)
	}},
	{"shim", (*soak).killShim},
	{"API server", func(s *soak, ctx context.Context) error {
		if err := s.bed.ControlPlane.StopAPIServer(); err != nil {
			return err
		}
		return s.bed.ControlPlane.StartAPIServer(ctx)
	}},
}

// inject kills one thing and counts whether the node survives: a new pod then starts and is removed. The
// first faults are one of each kind, the others are chosen at random.
func (s *soak) inject(t *testing.T, n int) {
	t.Helper()
	fault := soakFaults[n%len(soakFaults)]
	if n >= len(soakFaults) {
		fault = soakFaults[s.random.IntN(len(soakFaults))]
	}
	time.Sleep(time.Duration(s.random.IntN(1000)) * time.Millisecond)
	s.made[fault.name]++
	err := fault.run(s, t.Context())
	if err == nil {
		err = s.tryPod(t.Context(), fmt.Sprintf("canary-%d", n))
	}
	s.tally.Fault(err == nil)
	if err != nil {
		t.Errorf("fault %d, killed %s: %v", n, fault.name, err)
	}
}

// killShim kills a shim that is not of a steady pod.
func (s *soak) killShim(ctx context.Context) error {
	sandboxes, err := s.runtime.ListPodSandboxes(ctx, nil)
	if err != nil {
		return err
	}
	var churned []string
	for _, sandbox := range sandboxes {
		if sandbox.Labels["soak"] == "churned" {
			churned = append(churned, sandbox.Id)
		}
	}
	if len(churned) == 0 {
		return nil
	}
	slices.Sort(churned)
	id := churned[s.random.IntN(len(churned))]
	// Nothing is killed if it has ended in the meantime.
	_, err = s.node.Exec(ctx, "sh", "-c", `for p in /proc/[0-9]*; do
		[ "$(cat $p/comm 2>/dev/null)" = containerd-shim ] && tr '\0' ' ' < $p/cmdline | grep -q -- "-id $0" && kill -9 ${p#/proc/}
	done; true`, id)
	return err
}

// tryPod starts a pod, waits until it is ready, and removes it.
func (s *soak) tryPod(ctx context.Context, name string) error {
	pods := s.client().CoreV1().Pods(soakSpace)
	if _, err := pods.Create(ctx, sleeper(name, s.node.Name()), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create canary: %w", err)
	}
	if err := s.awaitPod(ctx, name, "ready"); err != nil {
		return err
	}
	if err := pods.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete canary: %w", err)
	}
	return s.awaitPod(ctx, name, "gone")
}

// awaitPod waits until a pod is ready or gone.
func (s *soak) awaitPod(ctx context.Context, name, state string) error {
	missing := waitFor(3*timeout, func() string {
		list, err := s.client().CoreV1().Pods(soakSpace).List(ctx, byName(name))
		switch {
		case err != nil:
			return err.Error()
		case state == "gone" && len(list.Items) == 0:
			return ""
		case state == "gone" || len(list.Items) == 0:
			return fmt.Sprintf("%d pods of that name exist", len(list.Items))
		}
		return ready(&list.Items[0])
	})
	if missing != "" {
		return fmt.Errorf("canary is not %s: %s", state, missing)
	}
	return nil
}

func (s *soak) summary() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(s.made)) {
		parts = append(parts, fmt.Sprintf("killed %s %d times", name, s.made[name]))
	}
	return strings.Join(parts, ", ")
}
