package podsync

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
	"swiftlet/internal/why"
)

// makeSandbox returns the pod's sandbox. It creates one if the plan needs a new one.
func (a *attempt) makeSandbox(ctx context.Context, actions plan.Actions) (sandbox, error) {
	if !actions.NewSandbox {
		return sandbox{id: a.observed.Sandbox().ID, ips: a.sandboxIPs(a.observed)}, nil
	}
	step := why.Step{Kind: why.Sandbox}
	a.begins(step)
	created, err := a.newSandbox(ctx)
	a.ended(step, err)
	return created, err
}

func (a *attempt) newSandbox(ctx context.Context) (sandbox, error) {
	if a.observed.Sandbox() != nil {
		a.deps.Events.Eventf(pod.EventRef(a.p, ""), v1.EventTypeNormal, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
	}
	if err := a.deps.Runtime.Stop(ctx, a.p, runtime.Targets{Sandboxes: a.observed.Sandboxes}, runtime.StopOptions{}); err != nil {
		return sandbox{}, err
	}
	// The creation is not canceled when the pod starts to terminate: a half-created sandbox is
	// harder to find than a complete one. The call has a deadline of its own.
	detached := context.WithoutCancel(ctx)
	id, ips, err := a.deps.Runtime.CreateSandbox(detached, a.prepared)
	if err != nil {
		return sandbox{}, fmt.Errorf("create sandbox of pod: %w", err)
	}
	return sandbox{id: id, ips: pod.Addresses(ips, a.cfg.IPv6First)}, nil
}
