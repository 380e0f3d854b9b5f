package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	goruntime "runtime"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/admit"
	"swiftlet/internal/desired"
	"swiftlet/internal/eviction"
	"swiftlet/internal/image"
	"swiftlet/internal/logs"
	"swiftlet/internal/observe"
	"swiftlet/internal/pluginreg"
	"swiftlet/internal/pod"
	"swiftlet/internal/podsync"
	"swiftlet/internal/probe"
	"swiftlet/internal/resource/allocation"
	"swiftlet/internal/resource/device"
	"swiftlet/internal/resource/dra"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/userns"
	"swiftlet/internal/runtime"
	"swiftlet/internal/server"
	"swiftlet/internal/stats"
	"swiftlet/internal/status"
	"swiftlet/internal/syncloop"
	"swiftlet/internal/volume"
	"swiftlet/internal/volume/csi"
	"swiftlet/internal/worker"
)

// pods is the path of a pod, from what is wanted to what is published.
type pods struct {
	snapshots chan pod.Snapshot
	desired   *desired.Pods
	mirrors   *desired.Mirrors // nil without an API server
	logs      *logs.Reader
	users     *userns.Ranges
	runtime   *runtime.Runtime
	observer  *observe.Observer
	images    *image.Puller
	collector *image.Collector
	csi       *csi.Plugin
	plugins   *pluginreg.Registry
	volumes   *volume.Volumes
	probes    *probe.Prober
	devices   *device.Manager
	claims    *dra.Manager
	aligner   *numa.Aligner
	status    *status.Publisher
	steps     *podsync.Steps
	keeper    *podsync.Keeper
	workers   *worker.Pool
	allocated *allocation.State
	actuated  *allocation.State
	allocator *allocation.Allocator
	admission *admit.Admission
	stats     *stats.Stats
	evictor   *eviction.Evictor
	loop      *syncloop.Loop
	// judged counts who was let in and who was sent away.
	judged func(p *v1.Pod, rejection string)

	parts []part
}

// makePods makes the path from its end to its beginning.
func (a *Agent) makePods(context.Context) error {
	p := &a.pods
	p.snapshots = make(chan pod.Snapshot)
	for _, make := range []func() error{
		a.makeUsers, a.makeGiven, a.makeRuntime, a.makeObserver, a.makeImages, a.makeVolumes, a.makeDevices, a.makeAligner, a.makeClaims, a.makePlugins, a.makeProbes,
		a.makeDesired, a.makeStatus, a.makeLogRotation, a.makeResources, a.makeSteps, a.makeWorkers, a.makeSources,
		a.makeStats, a.makeEvictor, a.makeLoop,
	} {
		if err := make(); err != nil {
			return err
		}
	}
	p.parts = append(p.parts,
		part{"observe", p.observer.Run}, part{"logs", p.logs.Run}, part{"volumes", p.volumes.Run}, part{"probes", p.probes.Run},
		part{"status", p.status.Run}, part{"workers", p.workers.Run}, part{"admission", p.admission.Run}, part{"sync loop", p.loop.Run},
		part{"housekeeping", p.keeper.Run}, part{"eviction", p.evictor.Run}, part{"image collection", p.collector.Run})
	var err error
	a.edge.view, err = server.NewPodView(server.PodViewDeps{Desired: p.desired, Observer: p.observer, Statuses: p.status})
	if err == nil && a.opts.Show != nil {
		p.parts = append(p.parts, part{"board", newBoard(a.edge.view, p.status, a.opts).run})
	}
	return err
}

// makeUsers reads which ids may be given to pods that do not share the host's users.
func (a *Agent) makeUsers() error {
	perPod := int64(userns.Size)
	if u := a.cfg.Kubelet.UserNamespaces; u != nil && u.IDsPerPod != nil {
		perPod = *u.IDsPerPod
	}
	first, count, err := userns.Subordinate(int64(a.cfg.Kubelet.MaxPods) * perPod)
	if err != nil {
		return err
	}
	a.pods.users, err = userns.New(userns.Config{RootDir: a.cfg.Flags.RootDir, First: first, Count: count, PerPod: perPod}, a.log)
	return err
}

func (a *Agent) makeRuntime() (err error) {
	kc := &a.cfg.Kubelet
	if a.pods.logs, err = logs.New(logs.Config{Dir: kc.PodLogsDir}, logs.Deps{Clock: a.clock, Log: a.log}); err != nil {
		return err
	}
	v2, err := a.v2()
	if err != nil {
		return err
	}
	a.pods.runtime, err = runtime.New(runtime.Config{
		RootDir:          a.cfg.Flags.RootDir,
		PodLogsDir:       kc.PodLogsDir,
		ContainerLogsDir: containerLogsDir(kc.PodLogsDir),
		SeccompRoot:      filepath.Join(a.cfg.Flags.RootDir, "seccomp"),
		SeccompDefault:   a.cfg.SeccompDefault(),
		CPUQuota:         *kc.CPUCFSQuota,
		CPUPeriod:        kc.CPUCFSQuotaPeriod.Duration,
		MemoryCapacity:   a.machine.facts.MemoryBytes,
		StopSignals:      a.cfg.Features.ContainerStopSignals,
		DefaultSysctls:   kc.DefaultPodSysctls, // none unless its gate is on
		Swap:             a.swap(),
		V2:               v2,
		SELinux:          a.machine.labels,
	}, runtime.Deps{
		CRI:           a.cri,
		DNS:           a.machine.dns,
		Events:        a.api.events,
		Meters:        a.metrics.Runtime(),
		Log:           a.log,
		Clock:         a.clock,
		Random:        rand.Uint32,
		LogTail:       a.pods.logs.Tail,
		UserNamespace: a.pods.users.Of,
		Place:         a.given.place,
		Alone:         a.given.cpus.PodAlone,
	})
	return err
}

func (a *Agent) makeObserver() (err error) {
	a.pods.observer, err = observe.New(observe.Config{}, observe.Deps{
		Runtime:     a.cri,
		ReadMessage: func(_ pod.Ref, c *pod.Container) string { return a.pods.runtime.TerminationMessage(c) },
		Disturbed:   a.machine.node.Poke,
		Meters:      a.metrics.Observe(),
		Clock:       a.clock,
		Log:         a.log,
	})
	return err
}

// observed says why the runtime cannot be observed; the node asks.
func (a *Agent) observed() error { return a.pods.observer.Healthy() }

func (a *Agent) makeProbes() (err error) {
	a.pods.probes, err = probe.New(probe.Deps{
		Checker: probe.NewChecks(a.cri), Events: a.api.events, Clock: a.clock, Log: a.log,
		Random: rand.Float64, Cores: goruntime.NumCPU(),
	})
	return err
}

func (a *Agent) makeDesired() (err error) {
	p := &a.pods
	if p.desired, err = desired.New(desired.Config{Sources: a.sourceNames(), Dialect: a.dialect()}, desired.Deps{Clock: a.clock}); err != nil {
		return err
	}
	if c := a.api.clients; c != nil {
		p.mirrors, err = desired.NewMirrors(desired.MirrorConfig{NodeName: a.name},
			desired.MirrorDeps{Client: c.Kube.CoreV1(), NodeUID: a.nodeUID})
	}
	return err
}

func (a *Agent) makeStatus() (err error) {
	deps := status.Deps{Mirror: a.pods.desired.MirrorOf, Clock: a.clock, Jitter: rand.Float64, Meters: a.metrics.Status(), Log: a.log}
	if c := a.api.clients; c != nil {
		deps.Client = status.NewClient(c.Kube.CoreV1().RESTClient())
	}
	a.pods.status, err = status.New(status.Config{}, deps)
	return err
}

func (a *Agent) makeSteps() (err error) {
	p := &a.pods
	cgroups := a.podCgroups()
	p.judged = a.metrics.Admitted()
	meters := a.metrics.Podsync()
	meters.Rejected = p.judged
	deps := podsync.Deps{
		Runtime:   p.runtime,
		Logs:      p.runtime,
		Observer:  p.observer,
		Images:    p.images,
		Volumes:   p.volumes,
		Cgroups:   cgroups,
		Status:    p.status,
		Objects:   a.api.objects,
		Sources:   envSources{a.api.objects, a.api.services},
		Probes:    p.probes,
		Resources: podResources{a},
		Resizing:  podsync.Resizing{Given: p.allocated, Actual: p.actuated, Usage: memoryUsage{cgroups, a.cri}},
		Node:      podsync.Node{Handler: a.handler, Allocatable: a.machine.node.Allocatable, Network: a.network, HostIPs: a.hostIPs},
		Removed:   a.removed,
		Meters:    meters,
		Events:    a.api.events,
		Clock:     a.clock,
		Log:       a.log,
	}
	if a.given.cpus.Binds() {
		deps.Pinning = podsync.Pinning{CPUs: a.given.cpusOf, Pin: a.bind}
	}
	if p.mirrors != nil {
		deps.Mirrors = p.mirrors
	}
	if err := a.makeKeeper(cgroups); err != nil {
		return err
	}
	a.api.objects.OnChange(a.objectChanged)
	if a.tracing != nil {
		a.tracing.Start(&deps)
	}
	var backoff podsync.Backoff
	backoff.First, backoff.Longest = a.cfg.CrashBackoff()
	p.steps, err = podsync.New(podsync.Config{
		RuntimeName: a.machine.runtime.Name,
		Backoff:     backoff,
		KeepDead:    int(a.cfg.Flags.MaximumDeadContainersPerContainer),
		KeepFor:     a.cfg.Flags.MinimumContainerTTL,
		KeepOnNode:  int(a.cfg.Flags.MaximumDeadContainers),
		StopSignals: a.cfg.Features.ContainerStopSignals,
		IPv6First:   len(a.machine.nodeIPs) > 0 && a.machine.nodeIPs[0].To4() == nil,
	}, deps)
	return err
}

func (a *Agent) makeKeeper(cgroups podCgroups) (err error) {
	p := &a.pods
	deps := podsync.KeeperDeps{
		Known:   a.known,
		Held:    func(uid types.UID) bool { _, held := p.observer.Get(uid); return held || p.observer.Unread(uid) },
		Folders: p.volumes,
		Cgroups: cgroups,
		Logs:    p.runtime,
		Retain:  a.retain,
		Thin:    func(ctx context.Context) error { return p.steps.Thin(ctx, a.ended) },
		Swept:   a.metrics.Swept(),
		Log:     a.log,
	}
	if p.mirrors != nil {
		deps.Mirrors, deps.OrphanMirrors = p.mirrors, a.orphanMirrors
	}
	p.keeper, err = podsync.NewKeeper(deps)
	return err
}

func (a *Agent) makeWorkers() (err error) {
	newSteps := func() worker.Steps { return a.pods.steps.NewPod() }
	if a.tracing != nil {
		newSteps = a.tracing.Steps(newSteps, a.pods.status.Get)
	}
	a.pods.workers, err = worker.New(worker.Deps{NewSteps: newSteps, Meters: a.metrics.Worker(), Clock: a.clock, Log: a.log})
	return err
}

func (a *Agent) makeLoop() (err error) {
	p := &a.pods
	if err := a.makeAdmission(); err != nil {
		return fmt.Errorf("make admission: %w", err)
	}
	p.loop, err = syncloop.New(syncloop.Deps{
		Snapshots: p.snapshots,
		Desired:   p.desired,
		Observer:  p.observer,
		Workers:   shownWorkers{p.workers, a},
		Admission: p.admission,
		Probed:    p.probes.Changes(),
		Seen:      a.metrics.Seen,
		Relisted:  func() { p.status.Relisted(p.desired.List()) },
		Housekeep: a.housekeep,
		Clock:     a.clock,
		Log:       a.log,
	})
	return err
}
