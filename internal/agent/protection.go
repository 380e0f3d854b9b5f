package agent

import (
	"context"

	"swiftlet/internal/eviction"
	"swiftlet/internal/shutdown"
	"swiftlet/internal/stats"
)

// protection has the node's stats, eviction, and graceful shutdown.
type protection struct {
	stats    *stats.Stats
	evictor  *eviction.Evictor
	shutdown *shutdown.Manager
}

func newProtection(b *base, a *api, r runtimeClient, m *machine, on running, states states, s syncing) (p protection, err error) {
	cfg := stats.ConfigFrom(b.cfg, b.nodeName, m.hardware.ForStats(), m.cgroups.KubeletCgroup(), b.clock.Now())
	cfg.PodsCgroup = m.groups.Kubepods()
	if cfg.PodsFromRuntime {
		b.metrics.StatsFromRuntime()
	}
	p.stats, err = stats.New(cfg, stats.Deps{
		Cgroups: m.cgroups, Runtime: r.cri, Pods: on.observer.List, Volumes: on.volumes.MeasurableVolumes,
		VolumeMeasured: b.metrics.VolumeStats(), Panics: b.panics, Clock: b.clock, Log: b.log,
	})
	if err != nil {
		return p, err
	}
	if p.evictor, err = newEvictor(b, a, m, p.stats, on, s); err != nil {
		return p, err
	}
	deps := shutdown.Deps{
		TerminatePod: shutdown.PodTerminator{Workers: s.workers, StatusWritten: states.status.Written, Log: b.log}.Terminate,
		Pods:         s.workers.Active, ShuttingDownChanged: b.hub.reportNode, Events: a.events, Node: a.node, Clock: b.clock, Log: b.log,
	}
	if b.cfg.Features.GracefulNodeShutdownBasedOnPodPriority {
		deps.ReportTimes = b.metrics.Shutdown()
	}
	p.shutdown, err = shutdown.New(shutdown.ConfigFrom(b.cfg), deps)
	return p, b.addUnless(err, "shutdown", p.shutdown.Run)
}

func newEvictor(b *base, a *api, m *machine, measured *stats.Stats, on running, s syncing) (*eviction.Evictor, error) {
	cfg, err := eviction.ConfigFrom(b.cfg)
	if err != nil {
		return nil, err
	}
	evictor, err := eviction.New(cfg, eviction.Deps{
		Stats: measured, Pods: s.workers, MemoryNotifier: m.cgroups.NewMemoryNotifier(m.groups.Kubepods()),
		RemoveContainers: func(ctx context.Context) error { return s.steps.RemoveEnded(ctx, m.workers.Ended) },
		RemoveImages:     on.images.Collector.RemoveUnused, ConditionsChanged: b.hub.reportNode,
		Panics: b.panics, Events: a.events, Node: a.node, Meters: b.metrics.Eviction(), Clock: b.clock, Log: b.log,
	})
	return evictor, b.addUnless(err, "eviction", evictor.Run)
}
