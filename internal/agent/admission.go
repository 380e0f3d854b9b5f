package agent

import (
	"swiftlet/internal/admit"
	"swiftlet/internal/resource/allocation"
)

// newAdmission makes the admission. New pods and resizes pass the same checks.
func (p *pods) newAdmission(b *base, a *api, m *machine, amounts allocation.States) (*admit.Admission, error) {
	nodeDeps := admit.NodeDeps{Local: m.node.Object, IsDevice: p.managers.Devices.Manages}
	if a.caches != nil {
		nodeDeps.Watched, nodeDeps.Read = a.caches.Node.Watched, a.caches.Node.Read
	}
	node, err := admit.NewNode(nodeDeps)
	if err != nil {
		return nil, err
	}
	deps := admit.ChecksDeps{
		Node: node, Pressures: p.evictor.Conditions, Allocate: p.managers.Aligner.Admit,
		Preempt: admit.NewPreempt(p.workers, a.events, b.log), ShuttingDown: p.shutdown.ShuttingDown,
	}
	checks, err := admit.NewChecks(admit.ChecksConfigFrom(b.cfg, m.hardware.Kernel), deps)
	if err != nil {
		return nil, err
	}
	if b.cfg.Features.InPlacePodVerticalScalingSchedulerPreemption {
		deps.Preempt = nil // the scheduler preempts pods for resizes
	}
	resizes, err := admit.NewChecks(admit.ChecksConfigFrom(b.cfg, m.hardware.Kernel), deps)
	if err != nil {
		return nil, err
	}
	rules := admit.ResizeRulesFrom(b.cfg, p.runtime.MayUseSwap)
	p.allocator, err = allocation.New(allocation.Deps{
		Allocated: amounts.Allocated, PodLevel: rules.PodLevel, Infeasible: rules.Infeasible, Check: resizes.Admit,
		Events: a.events, Meters: b.metrics.Allocation(), Clock: b.clock,
	})
	if err != nil {
		return nil, err
	}
	b.hub.podRemoved.Subscribe(p.allocator.Forget)
	return admit.NewAdmission(admit.Deps{
		Check: checks.Admit, Allocator: p.allocator, Node: node, Workers: p.workers, Status: p.status.Get,
		Desired: p.desired.Get, Observed: p.observer.Get, CountDecision: p.countAdmission, Events: a.events, Log: b.log,
	})
}
