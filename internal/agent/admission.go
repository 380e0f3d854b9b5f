package agent

import (
	"swiftlet/internal/admit"
	"swiftlet/internal/resource/allocation"
)

// admission has the allocator of resources and what decides on pods. New pods and resizes pass
// the same checks.
type admission struct {
	*admit.Admission
	allocator *allocation.Allocator
}

func newAdmission(b *base, a *api, m *machine, on running, states states, s syncing, p protection, amounts allocation.States) (admitted admission, err error) {
	nodeDeps := admit.NodeDeps{Local: m.node.Object, IsDevice: on.managers.Devices.Manages}
	if a.caches != nil {
		nodeDeps.Watched, nodeDeps.Read = a.caches.Node.Watched, a.caches.Node.Read
	}
	node, err := admit.NewNode(nodeDeps)
	if err != nil {
		return admitted, err
	}
	deps := admit.ChecksDeps{
		Node: node, Pressures: p.evictor.Conditions, Allocate: on.managers.Aligner.Admit,
		Preempt: admit.NewPreempt(s.workers, a.events, b.metrics.Preemptions(), b.log), ShuttingDown: p.shutdown.ShuttingDown,
	}
	checks, err := admit.NewChecks(admit.ChecksConfigFrom(b.cfg, m.hardware.Kernel), deps)
	if err != nil {
		return admitted, err
	}
	if b.cfg.Features.InPlacePodVerticalScalingSchedulerPreemption { // the scheduler preempts pods for resizes
		deps.Preempt = nil
	}
	resizes, err := admit.NewChecks(admit.ChecksConfigFrom(b.cfg, m.hardware.Kernel), deps)
	if err != nil {
		return admitted, err
	}
	rules := admit.ResizeRulesFrom(b.cfg, on.runtime.MayUseSwap)
	admitted.allocator, err = allocation.New(allocation.Deps{
		Allocated: amounts.Allocated, PodLevel: rules.PodLevel, Infeasible: rules.Infeasible, Check: resizes.Admit,
		Events: a.events, Meters: b.metrics.Allocation(), Clock: b.clock,
	})
	if err != nil {
		return admitted, err
	}
	b.hub.podRemoved.Subscribe(admitted.allocator.Forget)
	admitted.Admission, err = admit.NewAdmission(admit.Deps{
		Check: checks.Admit, Allocator: admitted.allocator, Node: node, Workers: s.workers, Status: states.status.Get, Desired: states.desired.Get,
		Observed: on.observer.Get, CountDecision: s.countAdmission, Events: a.events, Panics: b.panics, Log: b.log,
	})
	return admitted, b.addUnless(err, "admission", admitted.Run)
}
