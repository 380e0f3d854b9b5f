package podsync

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
)

// configure finds out which runtime the pod's sandbox is to have, and what it is asked for.
// A sandbox that is there stays in its runtime, even if its class is gone meanwhile.
func (s *Steps) configure(ctx context.Context, p *v1.Pod, actions plan.Actions) (Handler, *runtimeapi.PodSandboxConfig, error) {
	handler, err := s.deps.Handler(p)
	if err != nil {
		if actions.NewSandbox {
			return handler, nil, s.deps.Runtime.SandboxFailed(ctx, p, err)
		}
		s.deps.Log.Warn("the runtime of a pod that has a sandbox is not known any more", "pod", pod.RefOf(p).String(), "err", err)
	}
	config, err := s.deps.Runtime.SandboxConfig(p, actions.Attempt, s.deps.Cgroups.PodParent(p))
	switch {
	case err != nil && actions.NewSandbox:
		return handler, nil, s.deps.Runtime.SandboxFailed(ctx, p, err)
	case err != nil:
		return handler, nil, fmt.Errorf("configure the sandbox: %w", err)
	}
	return handler, config, nil
}

// makeSandbox gives the pod a sandbox, or finds the one it has.
func (a *attempt) makeSandbox(ctx context.Context, actions plan.Actions) (sandbox, error) {
	if !actions.NewSandbox {
		return sandbox{id: a.observed.Sandbox().ID, ips: a.sandboxIPs(a.observed)}, nil
	}
	if a.observed.Sandbox() != nil {
		a.deps.Events.Eventf(pod.EventRef(a.p, ""), v1.EventTypeNormal, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
	}
	if err := a.stopSandboxes(ctx, a.observed); err != nil {
		return sandbox{}, err
	}
	// A sandbox that is being made is not abandoned when the pod is to end meanwhile: half
	// of one is harder to find than a whole one. The call has a deadline of its own.
	detached := context.WithoutCancel(ctx)
	id, err := a.deps.Runtime.CreateSandbox(detached, a.p, a.config, a.handler.Name)
	if err != nil {
		return sandbox{}, fmt.Errorf("create the pod's sandbox: %w", err)
	}
	if a.p.Spec.HostNetwork {
		return sandbox{id: id}, nil
	}
	ips, err := a.deps.Sandboxes.SandboxIPs(detached, id)
	if err != nil {
		return sandbox{}, fmt.Errorf("read the sandbox's address: %w", err)
	}
	return sandbox{id: id, ips: pod.Addresses(ips, a.cfg.IPv6First)}, nil
}

// stopSandboxes stops all sandboxes of a pod that are not stopped yet. One that died keeps
// its address until it is stopped.
func (s *Steps) stopSandboxes(ctx context.Context, observed *pod.Observed) error {
	var left []pod.Sandbox
	for _, b := range observed.Sandboxes {
		if b.Ready || len(b.IPs) > 0 {
			left = append(left, b)
		}
	}
	return together(left, func(b pod.Sandbox) error { return s.deps.Runtime.StopSandbox(ctx, b.ID) })
}
