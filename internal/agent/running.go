package agent

import (
	"math/rand/v2"

	"swiftlet/internal/image"
	"swiftlet/internal/image/credentialplugin"
	"swiftlet/internal/logs"
	"swiftlet/internal/observe"
	"swiftlet/internal/pluginreg"
	"swiftlet/internal/pod"
	"swiftlet/internal/podsync"
	"swiftlet/internal/runtime"
	"swiftlet/internal/volume/safepath"
)

// running has what pods run with: containers, images, volumes and resources.
type running struct {
	logs     *logs.Reader
	runtime  *runtime.Runtime
	observer *observe.Observer
	images   image.Manager
	storage
	managers *podsync.Managers
	plugins  *pluginreg.Registry
}

func newRunning(b *base, a *api, r runtimeClient, m *machine, plugins *credentialplugin.Plugins) (p running, err error) {
	if p.logs, err = logs.New(logs.Config{Dir: b.cfg.Kubelet.PodLogsDir}, logs.Deps{Clock: b.clock, Log: b.log}); err != nil {
		return p, err
	}
	b.add("logs", p.logs.Run)
	users, err := newUserNamespaces(b)
	if err != nil {
		return p, err
	}
	p.runtime, err = runtime.New(runtime.ConfigFrom(b.cfg, m.kernel()), runtime.Deps{
		CRI: r.cri.BriefExec(), DNS: m.dns, LogTail: p.logs.Tail, RemoveTree: safepath.RemoveAll, UserNamespace: users.Of,
		Cpuset: podsync.CpusetFrom(m.Exclusive), ExclusiveCPUs: m.CPUs.PodHasExclusiveCPUs,
		Events: a.events, Meters: b.metrics.Runtime(), Why: b.why, Random: rand.Uint32, Clock: b.clock, Log: b.log,
	})
	if err != nil {
		return p, err
	}
	p.observer, err = observe.New(observe.Config{}, observe.Deps{
		Runtime: r.cri, ReadMessage: func(_ pod.Ref, c *pod.Container) string { return p.runtime.TerminationMessage(c) },
		HealthChanged: b.hub.reportNode, Events: a.events, Node: m.node.ObjectRef,
		Panics: b.panics, Meters: b.metrics.Observe(), Clock: b.clock, Log: b.log,
	})
	if err := b.addUnless(err, "observe", p.observer.Run); err != nil {
		return p, err
	}
	if p.images, err = newImages(b, a, r, p.observer, plugins); err != nil {
		return p, err
	}
	if p.storage, err = newStorage(b, a, m); err != nil {
		return p, err
	}
	if p.managers, err = newManagers(b, a, m, p.observer); err != nil {
		return p, err
	}
	p.plugins, err = newPluginRegistry(b, p.storage, p.managers)
	return p, err
}
