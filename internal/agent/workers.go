package agent

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/logs"
	"swiftlet/internal/pod"
	"swiftlet/internal/podsync"
	"swiftlet/internal/resource/allocation"
	"swiftlet/internal/worker"
)

// makeWorkers makes the steps of a pod's life cycle, and the workers that run them.
func (p *pods) makeWorkers(b *base, a *api, r runtimeClient, m *machine, amounts allocation.States) (err error) {
	if p.probes, err = newProbes(b, a, r); err != nil {
		return err
	}
	p.countAdmission = b.metrics.Admission()
	deps := podsync.Deps{
		Runtime: p.runtime, Logs: p.runtime, Observer: p.observer, Images: p.images.Puller, Volumes: p.volumes, Cgroups: m.groups,
		Status: p.status, Objects: a.objects, Sources: a.envSources(), Probes: p.probes, Resources: p.managers,
		Resizing: podsync.Resizing{Allocated: amounts.Allocated, Actual: amounts.Actuated, Usage: podsync.MemoryUsage{Pod: m.groups.PodMemoryUsage, Runtime: r.cri}},
		Pinning:  podsync.PinningTo(m.CPUs, r.cri),
		Node: podsync.Node{
			Handler:     podsync.HandlerFinder(a.runtimeClass(), m.node.Object),
			Allocatable: m.node.Allocatable, Network: m.node.NetworkReady, HostIPs: m.node.HostIPs,
		},
		Removed: b.hub.podRemoved.Publish,
		Meters:  b.metrics.Podsync(), Events: a.events, Clock: b.clock, Log: b.log,
	}
	deps.Meters.Rejected = p.countAdmission
	if p.mirrors != nil {
		deps.Mirrors = p.mirrors
	}
	if b.tracing != nil {
		b.tracing.Podsync(&deps)
	}
	ipv6First := len(m.nodeIPs) > 0 && m.nodeIPs[0].To4() == nil
	if p.steps, err = podsync.New(podsync.ConfigFrom(b.cfg, r.identity.Name, ipv6First), deps); err != nil {
		return err
	}
	newSteps := func() worker.Steps { return p.steps.NewPod() }
	if b.tracing != nil {
		newSteps = b.tracing.Steps(newSteps, p.status.Get)
	}
	p.workers, err = worker.New(m.workers, worker.Deps{NewSteps: newSteps, Meters: b.metrics.Worker(), Clock: b.clock, Log: b.log})
	if err != nil {
		return err
	}
	p.subscribeWorkers(b, a)
	b.add("workers", p.workers.Run)
	return newLogRotation(b, r, p)
}

// subscribeWorkers syncs pods on events other than changes of their spec and their containers.
func (p *pods) subscribeWorkers(b *base, a *api) {
	b.hub.syncPod.Subscribe(p.workers.Wake)
	b.hub.syncPods.Subscribe(func(struct{}) {
		for _, active := range p.workers.Active() {
			p.workers.Wake(active.UID)
		}
	})
	b.hub.apiServerBack.Subscribe(func(struct{}) { p.workers.Retry() })
	a.objects.OnChange(func(kind, namespace, name string) {
		for _, uid := range p.desired.Using(kubeapi.Ref{Kind: kind, Namespace: namespace, Name: name}) {
			p.workers.ObjectChanged(uid)
		}
	})
}

// newHousekeeper makes the part that cleans up after pods without a worker.
func newHousekeeper(b *base, p *pods, m *machine) (*podsync.Housekeeper, error) {
	deps := podsync.HousekeeperDeps{
		Known: p.known, InRuntime: p.observer.Holds, Directories: p.volumes, Cgroups: m.groups, Logs: p.runtime, ReleaseUnknown: p.managers.Retain,
		RemoveSurplus: func(ctx context.Context) error { return p.steps.RemoveSurplus(ctx, m.workers.Ended) },
		OrphansFound:  b.metrics.OrphansCleaned(), Log: b.log,
	}
	if p.mirrors != nil {
		deps.Mirrors = p.mirrors
		// A mirror pod is kept while its static pod is being stopped, to show its status.
		deps.OrphanMirrors = func() []*v1.Pod {
			return slices.DeleteFunc(p.desired.OrphanMirrors(), func(mirror *v1.Pod) bool {
				return m.workers.KnownByName(pod.FullName(mirror))
			})
		}
	}
	housekeeper, err := podsync.NewHousekeeper(deps)
	b.hub.apiServerBack.Subscribe(func(struct{}) { housekeeper.Retry() })
	b.hub.driverRegistered.Subscribe(func(string) { housekeeper.Retry() })
	return housekeeper, b.addUnless(err, "housekeeping", housekeeper.Run)
}

// newLogRotation adds the rotation of container logs.
func newLogRotation(b *base, r runtimeClient, p *pods) error {
	cfg, err := logs.RotateConfigFrom(&b.cfg.Kubelet)
	if err != nil {
		return err
	}
	rotator, err := logs.NewRotator(cfg, logs.RotateDeps{
		Containers: func() []logs.Container { return logs.Running(p.observer.List()) },
		Reopen:     r.cri.ReopenContainerLog, Clock: b.clock, Log: b.log,
	})
	// The start and the end of a container change the pod's status.
	p.status.Subscribe(rotator.Notify)
	return b.addUnless(err, "log rotation", rotator.Run)
}
