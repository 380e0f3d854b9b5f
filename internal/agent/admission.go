package agent

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"swiftlet/internal/admit"
	"swiftlet/internal/config"
	"swiftlet/internal/host"
	"swiftlet/internal/resource/allocation"
)

// makeAdmission has new pods and resizes pass the same checks.
func (a *Agent) makeAdmission() error {
	p := &a.pods
	source := admit.NodeDeps{Own: a.machine.node.Object, Allocates: p.devices.Gives}
	if a.api.clients != nil {
		source.Watched, source.Read = a.watchedNode, a.readNode
	}
	node, err := admit.NewNode(source)
	if err != nil {
		return err
	}
	preempt := admit.Preempting(p.workers, a.api.events, a.log)
	checks, err := a.newChecks(node, preempt)
	if err != nil {
		return err
	}
	if a.cfg.Features.InPlacePodVerticalScalingSchedulerPreemption {
		preempt = nil // the scheduler makes room for resizes
	}
	resizes, err := a.newChecks(node, preempt)
	if err != nil {
		return err
	}
	if err := a.makeAllocator(resizes); err != nil {
		return err
	}
	p.admission, err = admit.NewAdmission(admit.Deps{
		Check:     checks.Admit,
		Allocator: p.allocator,
		Workers:   shownWorkers{p.workers, a},
		Wanted:    p.desired.Get,
		Node:      node,
		Observed:  p.observer.Get,
		Events:    a.api.events,
		Judged:    p.judged,
		Log:       a.log,
	})
	return err
}

func (a *Agent) newChecks(node *admit.Node, preempt admit.Preempt) (*admit.Admitter, error) {
	return admit.NewChecks(admit.ChecksConfig{
		Kernel:            a.machine.facts.Kernel,
		UnsafeSysctls:     a.cfg.Kubelet.AllowedUnsafeSysctls,
		Version:           config.KubernetesVersion,
		AppArmor:          host.AppArmorEnabled(),
		PodLevelResources: a.cfg.Features.PodLevelResources,
	}, admit.ChecksDeps{
		Conditions:   a.pods.evictor.Conditions,
		Allocate:     a.pods.aligner.Admit,
		Node:         node,
		Preempt:      preempt,
		ShuttingDown: a.machine.shutdown.Down,
	})
}

func (a *Agent) makeAllocator(checks *admit.Admitter) (err error) {
	kc, features := &a.cfg.Kubelet, &a.cfg.Features
	rules := admit.ResizeRules{PodLevel: features.InPlacePodLevelResourcesVerticalScaling, Swaps: a.pods.runtime.Swaps}
	if kc.CPUManagerPolicy == "static" {
		rules.FixedCPU = kc.CPUManagerPolicy
	}
	if kc.MemoryManagerPolicy == kubelet.StaticMemoryManagerPolicy {
		rules.FixedMemory = kc.MemoryManagerPolicy
	}
	a.pods.allocator, err = allocation.New(allocation.Deps{
		Allocated:  a.pods.allocated,
		PodLevel:   features.InPlacePodLevelResourcesVerticalScaling,
		Infeasible: rules.Infeasible,
		Check:      checks.Admit,
		Events:     a.api.events,
		Meters:     a.metrics.Allocation(),
		Clock:      a.clock,
	})
	return err
}

// readNode reads the Node from the API server, for labels that the watch has not shown yet.
func (a *Agent) readNode(ctx context.Context) (*v1.Node, error) {
	n, err := a.api.clients.Kube.CoreV1().Nodes().Get(ctx, a.name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read node %s: %w", a.name, err)
	}
	return n, nil
}
