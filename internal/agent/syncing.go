package agent

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/logs"
	"swiftlet/internal/pod"
	"swiftlet/internal/podsync"
	"swiftlet/internal/probe"
	"swiftlet/internal/resource/allocation"
	"swiftlet/internal/worker"
)

// syncing has the probes, the steps of a pod's life cycle, and the workers that run them.
type syncing struct {
	probes  *probe.Prober
	steps   *podsync.Steps
	workers *worker.Pool
	// countAdmission counts admitted pods (the reason is empty) and rejected ones.
	countAdmission func(p *v1.Pod, reason string)
}

func newSyncing(b *base, a *api, r runtimeClient, m *machine, on running, states states, amounts allocation.States) (s syncing, err error) {
	s.probes, err = probe.New(probe.Config{File: filepath.Join(b.cfg.Flags.RootDir, probe.ResultsFile)}, probe.Deps{
		Checker: probe.NewChecks(r.cri.BriefExec()), Random: b.around.Random, Cores: runtime.NumCPU(),
		Events: a.events, Why: b.why, Panics: b.panics, Clock: b.clock, Log: b.log,
	})
	if err := b.addUnless(err, "probes", s.probes.Run); err != nil {
		return s, err
	}
	s.countAdmission = b.metrics.Admission()
	deps := podsync.Deps{
		Runtime: on.runtime, Logs: on.runtime, Observer: on.observer, Images: on.images.Puller, Volumes: on.volumes, Cgroups: m.groups,
		Status: states.status, Objects: a.objects, Sources: kubeapi.EnvSources{ObjectGetter: a.objects, Caches: a.caches}, Probes: s.probes, Resources: on.managers,
		Resizing: podsync.Resizing{Allocated: amounts.Allocated, Actual: amounts.Actuated, Usage: podsync.MemoryUsage{Pod: m.groups.PodMemoryUsage, Runtime: r.cri}},
		Node: podsync.Node{
			Handler: podsync.HandlerFinder(a.caches.RuntimeClass, m.node.Object), Pinning: podsync.PinningTo(m.CPUs, r.cri),
			Allocatable: m.node.Allocatable, Network: m.node.NetworkReady, HostIPs: m.node.HostIPs,
		},
		Removed: b.hub.podRemoved.Publish, Meters: b.metrics.Podsync(), Events: a.events, Why: b.why, Clock: b.clock, Log: b.log,
	}
	deps.Meters.Rejected = s.countAdmission
	if states.mirrors != nil {
		deps.Mirrors = states.mirrors
	}
	if b.tracing != nil {
		b.tracing.Podsync(&deps)
	}
	ipv6First := len(m.nodeIPs) > 0 && m.nodeIPs[0].To4() == nil
	if s.steps, err = podsync.New(podsync.ConfigFrom(b.cfg, r.identity.Name, ipv6First), deps); err != nil {
		return s, err
	}
	newSteps := func() worker.Steps { return s.steps.NewPod() }
	if b.tracing != nil {
		newSteps = b.tracing.Steps(newSteps, states.status.Get)
	}
	s.workers, err = worker.New(m.workers, worker.Deps{
		NewSteps: newSteps, Waits: func(p *v1.Pod) { b.why.Await(p, b.clock.Now()) }, Retries: b.why.NextTry,
		Events: a.events, Panics: b.panics, Meters: b.metrics.Worker(), Clock: b.clock, Log: b.log,
	})
	if err := b.addUnless(err, "workers", s.workers.Run); err != nil {
		return s, err
	}
	s.subscribe(b, a, states)
	return s, newLogRotation(b, r, on, states)
}

// subscribe syncs pods on events other than changes of their spec and their containers.
func (s syncing) subscribe(b *base, a *api, states states) {
	b.hub.syncPod.Subscribe(s.workers.Wake)
	b.hub.syncPods.Subscribe(func(struct{}) { s.workers.WakeActive() })
	b.hub.apiServerBack.Subscribe(func(struct{}) { s.workers.Retry() })
	a.objects.OnChange(func(kind, namespace, name string) {
		for _, uid := range states.desired.Using(kubeapi.Ref{Kind: kind, Namespace: namespace, Name: name}) {
			s.workers.ObjectChanged(uid)
		}
	})
}

// newHousekeeper makes the part that cleans up after pods without a worker.
func newHousekeeper(b *base, m *machine, on running, states states, s syncing, known func(types.UID) bool) (*podsync.Housekeeper, error) {
	deps := podsync.HousekeeperDeps{
		Known: known, InRuntime: on.observer.Holds, Directories: on.volumes, Cgroups: m.groups, Logs: on.runtime, ReleaseUnknown: on.managers.Retain,
		RemoveSurplus: func(ctx context.Context) error { return s.steps.RemoveSurplus(ctx, m.workers.Ended) },
		OrphansFound:  b.metrics.OrphansCleaned(), Log: b.log,
	}
	if states.mirrors != nil {
		deps.Mirrors = states.mirrors
		// A mirror pod is kept while its static pod is being stopped, to show its status.
		deps.OrphanMirrors = func() []*v1.Pod {
			return slices.DeleteFunc(states.desired.OrphanMirrors(), func(mirror *v1.Pod) bool {
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
func newLogRotation(b *base, r runtimeClient, on running, states states) error {
	cfg, err := logs.RotateConfigFrom(&b.cfg.Kubelet)
	if err != nil {
		return err
	}
	rotator, err := logs.NewRotator(cfg, logs.RotateDeps{
		Containers: logs.Running(on.observer.All), Reopen: r.cri.ReopenContainerLog, Clock: b.clock, Log: b.log,
	})
	// The start and the end of a container change the pod's status.
	states.status.Subscribe(rotator.Notify)
	return b.addUnless(err, "log rotation", rotator.Run)
}
