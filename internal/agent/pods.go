package agent

import (
	"context"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/admit"
	"swiftlet/internal/desired"
	"swiftlet/internal/eviction"
	"swiftlet/internal/image"
	"swiftlet/internal/image/credentialplugin"
	"swiftlet/internal/logs"
	"swiftlet/internal/observe"
	"swiftlet/internal/pluginreg"
	"swiftlet/internal/pod"
	"swiftlet/internal/podsync"
	"swiftlet/internal/probe"
	"swiftlet/internal/resource/allocation"
	"swiftlet/internal/runtime"
	"swiftlet/internal/server/sockets"
	"swiftlet/internal/shutdown"
	"swiftlet/internal/source"
	"swiftlet/internal/stats"
	"swiftlet/internal/status"
	"swiftlet/internal/syncloop"
	"swiftlet/internal/worker"

	goruntime "runtime"
)

// pods has the parts on the path of a pod, from its source to its status.
type pods struct {
	logs     *logs.Reader
	runtime  *runtime.Runtime
	observer *observe.Observer
	images   image.Manager
	storage
	managers *podsync.Managers
	plugins  *pluginreg.Registry
	probes   *probe.Prober

	desired   *desired.Pods
	mirrors   *desired.Mirrors // nil without an API server
	status    *status.Publisher
	steps     *podsync.Steps
	workers   *worker.Pool
	allocator *allocation.Allocator
	stats     *stats.Stats
	evictor   *eviction.Evictor
	shutdown  *shutdown.Manager
	sockets   *sockets.Server
	loop      *syncloop.Loop
	// countAdmission counts admitted pods (the reason is empty) and rejected ones.
	countAdmission func(p *v1.Pod, reason string)
}

// newPods builds the path from its end to its beginning: each part depends on those after it.
func newPods(b *base, a *api, r runtimeClient, m *machine, plugins *credentialplugin.Plugins) (_ *pods, err error) {
	p := &pods{}
	if err := p.makeRuntime(b, a, r, m); err != nil {
		return nil, err
	}
	if p.images, err = newImages(b, a, r, p.observer, plugins); err != nil {
		return nil, err
	}
	if p.storage, err = newStorage(b, a, m); err != nil {
		return nil, err
	}
	if p.managers, err = newManagers(b, a, m, p.observer); err != nil {
		return nil, err
	}
	if p.plugins, err = newPluginRegistry(b, p); err != nil {
		return nil, err
	}
	if err := p.makeDesired(b, a); err != nil {
		return nil, err
	}
	amounts, err := allocation.OpenStates(b.cfg.Flags.RootDir)
	if err != nil {
		return nil, err
	}
	if err := p.makeWorkers(b, a, r, m, amounts); err != nil {
		return nil, err
	}
	if err := p.makeProtection(b, a, r, m); err != nil {
		return nil, err
	}
	housekeeper, err := newHousekeeper(b, p, m)
	if err != nil {
		return nil, err
	}
	admission, err := p.newAdmission(b, a, m, amounts)
	if err != nil {
		return nil, err
	}
	if err := p.makeSockets(b, m); err != nil {
		return nil, err
	}
	return p, p.makeLoop(b, a, admission, housekeeper, amounts)
}

// makeRuntime makes the parts that act on containers and observe them.
func (p *pods) makeRuntime(b *base, a *api, r runtimeClient, m *machine) (err error) {
	if p.logs, err = logs.New(logs.Config{Dir: b.cfg.Kubelet.PodLogsDir}, logs.Deps{Clock: b.clock, Log: b.log}); err != nil {
		return err
	}
	users, err := newUserNamespaces(b)
	if err != nil {
		return err
	}
	p.runtime, err = runtime.New(runtime.ConfigFrom(b.cfg, m.kernel()), runtime.Deps{
		CRI: r.cri, DNS: m.dns, LogTail: p.logs.Tail, UserNamespace: users.Of,
		Cpuset: podsync.CpusetFrom(m.Exclusive), ExclusiveCPUs: m.CPUs.PodHasExclusiveCPUs,
		Events: a.events, Meters: b.metrics.Runtime(), Random: rand.Uint32, Clock: b.clock, Log: b.log,
	})
	if err != nil {
		return err
	}
	p.observer, err = observe.New(observe.Config{}, observe.Deps{
		Runtime:       r.cri,
		ReadMessage:   func(_ pod.Ref, c *pod.Container) string { return p.runtime.TerminationMessage(c) },
		HealthChanged: b.hub.reportNode,
		Meters:        b.metrics.Observe(), Clock: b.clock, Log: b.log,
	})
	b.add("logs", p.logs.Run)
	return b.addUnless(err, "observe", p.observer.Run)
}

// makeDesired makes the desired pods and the publisher of their status.
func (p *pods) makeDesired(b *base, a *api) (err error) {
	sources := source.NamesFrom(&b.cfg.Kubelet, a.clients == nil)
	if p.desired, err = desired.New(desired.Config{Sources: sources, Fields: pod.NewGatedFields(b.cfg.Gate)}, desired.Deps{Clock: b.clock}); err != nil {
		return err
	}
	deps := status.Deps{Mirror: p.desired.MirrorOf, Clock: b.clock, Jitter: rand.Float64, Meters: b.metrics.Status(), Log: b.log}
	if c := a.clients; c != nil {
		deps.Client = status.NewClient(c.Kube.CoreV1().RESTClient())
		p.mirrors, err = desired.NewMirrors(desired.MirrorConfig{NodeName: b.nodeName},
			desired.MirrorDeps{Client: c.Kube.CoreV1(), NodeUID: a.caches.Node.UID})
		if err != nil {
			return err
		}
	}
	p.status, err = status.New(status.Config{}, deps)
	b.hub.apiServerBack.Subscribe(func(struct{}) { p.status.Retry() })
	return b.addUnless(err, "status", p.status.Run)
}

// makeLoop makes the sync loop, and the sources that feed it.
func (p *pods) makeLoop(b *base, a *api, admission *admit.Admission, housekeeper *podsync.Housekeeper, amounts allocation.States) (err error) {
	snapshots := make(chan pod.Snapshot)
	if err := newSources(b, a, p, snapshots); err != nil {
		return err
	}
	p.loop, err = syncloop.New(syncloop.Deps{
		Snapshots: snapshots, Desired: p.desired, Admission: admission, Workers: p.workers,
		Observer: p.observer, Probed: p.probes.Changes(),
		OnChange:  b.metrics.PodChanged,
		OnHandled: p.sockets.Notify,
		OnRelist:  func() { p.status.Relisted(p.desired.List()) },
		Housekeep: func(ctx context.Context) { amounts.Retain(p.known); housekeeper.Notify(ctx) },
		Clock:     b.clock, Log: b.log,
	})
	b.add("admission", admission.Run)
	return b.addUnless(err, "sync loop", p.loop.Run)
}

// known reports whether a source has the pod, or the pod has a worker.
func (p *pods) known(uid types.UID) bool {
	_, desired := p.desired.Get(uid)
	return desired || p.workers.Known(uid)
}

func newProbes(b *base, a *api, r runtimeClient) (*probe.Prober, error) {
	prober, err := probe.New(probe.Deps{
		Checker: probe.NewChecks(r.cri), Events: a.events, Clock: b.clock, Log: b.log,
		Random: rand.Float64, Cores: goruntime.NumCPU(),
	})
	return prober, b.addUnless(err, "probes", prober.Run)
}
