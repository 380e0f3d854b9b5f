package agent

import (
	"context"

	"swiftlet/internal/eviction"
	"swiftlet/internal/shutdown"
	"swiftlet/internal/stats"
)

// makeProtection makes the node's stats, eviction, and graceful shutdown.
func (p *pods) makeProtection(b *base, a *api, r runtimeClient, m *machine) (err error) {
	cfg := stats.ConfigFrom(b.cfg, b.nodeName, m.hardware.ForStats(), m.cgroups.KubeletCgroup(), b.clock.Now())
	cfg.PodsCgroup = m.groups.Kubepods()
	p.stats, err = stats.New(cfg, stats.Deps{
		Cgroups: m.cgroups, Runtime: r.cri, Pods: p.observer.List, Volumes: p.volumes.MeasurableVolumes,
		VolumeMeasured: b.metrics.VolumeStats(), Clock: b.clock, Log: b.log,
	})
	if err != nil {
		return err
	}
	if err := p.makeEvictor(b, a, m); err != nil {
		return err
	}
	deps := shutdown.Deps{
		Pods:                p.workers.Active,
		TerminatePod:        shutdown.PodTerminator{Workers: p.workers, StatusWritten: p.status.Written, Log: b.log}.Terminate,
		ShuttingDownChanged: b.hub.reportNode,
		Events:              a.events, Node: a.node, Clock: b.clock, Log: b.log,
	}
	if b.cfg.Features.GracefulNodeShutdownBasedOnPodPriority {
		deps.ReportTimes = b.metrics.Shutdown()
	}
	p.shutdown, err = shutdown.New(shutdown.ConfigFrom(b.cfg), deps)
	return b.addUnless(err, "shutdown", p.shutdown.Run)
}

func (p *pods) makeEvictor(b *base, a *api, m *machine) error {
	cfg, err := eviction.ConfigFrom(b.cfg)
	if err != nil {
		return err
	}
	p.evictor, err = eviction.New(cfg, eviction.Deps{
		Stats: p.stats, Pods: p.workers, MemoryNotifier: m.cgroups.NewMemoryNotifier(m.groups.Kubepods()),
		RemoveContainers:  func(ctx context.Context) error { return p.steps.RemoveEnded(ctx, m.workers.Ended) },
		RemoveImages:      p.images.Collector.RemoveUnused,
		ConditionsChanged: b.hub.reportNode,
		Events:            a.events, Node: a.node, Meters: b.metrics.Eviction(), Clock: b.clock, Log: b.log,
	})
	return b.addUnless(err, "eviction", p.evictor.Run)
}
