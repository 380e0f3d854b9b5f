package agent

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/host"
	"swiftlet/internal/metrics"
	"swiftlet/internal/page"
	"swiftlet/internal/page/assets"
	"swiftlet/internal/server"
	"swiftlet/internal/server/sockets"
)

// newServers adds the HTTP servers, the metrics and the watchdog.
func newServers(ctx context.Context, b *base, a *api, r runtimeClient, m *machine, p *pods) error {
	view, err := server.NewPodView(server.PodViewDeps{Desired: p.desired, Observer: p.observer, Statuses: p.status})
	if err != nil {
		return err
	}
	explain := server.WhyView{Steps: b.why, Statuses: p.status, Processes: m.cgroups.PodProcesses, Object: m.node.Object, Clock: b.clock}
	if b.opts.Show != nil {
		b.add("board", server.NewBoard(server.BoardConfig{View: view, Why: explain, Show: b.opts.Show, Forget: b.opts.Forget, Clock: b.clock}).Run)
	}
	if err := p.readMetrics(ctx, b); err != nil {
		return err
	}
	probes := prometheus.NewRegistry()
	probes.MustRegister(p.probes, metrics.StartTime())
	deps := server.Deps{
		Pods: view, Containers: view, Why: explain, Logs: p.logs, Runtime: r.cri, Stats: p.stats,
		Metrics: b.metrics.Gatherer(), ProbeMetrics: probes, SLIs: metrics.NewSLIs(metrics.StartTime()),
		Checks: []server.Check{{Name: "syncloop", Check: func(*http.Request) error { return p.loop.Healthy() }}},
		Meters: server.NewMeters(b.metrics), SetVerbosity: b.opts.SetVerbosity, Listen: b.around.Listen, Clock: b.clock, Log: b.log,
	}
	if b.tracing != nil {
		deps.Trace = b.tracing.HTTP
	}
	if c := a.clients; c != nil {
		deps.TokenReviews, deps.AccessReviews = c.Reviews.TokenReviews(), c.Reviews.SubjectAccessReviews()
	}
	if a.serving != nil {
		deps.Certificate = a.serving
	}
	if err := addPage(b, a, m, p, explain, &deps); err != nil {
		return err
	}
	cfg := server.ConfigFrom(b.cfg, b.nodeName)
	cfg.Version = b.opts.Version
	s, err := server.New(cfg, deps)
	if err := b.addUnless(err, "server", s.Run); err != nil {
		return err
	}
	return newWatchdog(b, p.loop.Healthy)
}

// addPage adds the page for people, if it is enabled.
func addPage(b *base, a *api, m *machine, p *pods, explain server.WhyView, to *server.Deps) error {
	if !b.cfg.Flags.EnableUI {
		return nil
	}
	served, err := page.New(page.Deps{
		Pods: p.desired, Statuses: p.status, Why: explain, Usage: p.stats, Node: m.node.Object, Events: a.events.Recent,
		Open: assets.Open, Clock: b.clock, Panics: b.panics, Log: b.log,
	})
	to.Page = served
	if b.opts.Access != nil {
		to.Sessions = b.opts.Access
	}
	return b.addUnless(err, "page", served.Run)
}

// newSockets makes the gRPC APIs for programs on the node.
func newSockets(b *base, m *machine, on running, states states, s syncing) (*sockets.Server, error) {
	server, err := sockets.New(sockets.ConfigFrom(b.cfg), sockets.Deps{
		Pods: sockets.LocalPods{Pods: states.desired, Workers: s.workers}, Statuses: states.status,
		CPUs: m.CPUs, Memory: m.Memory, Devices: on.managers.Devices, Claims: on.managers.Claims,
		Called: b.metrics.Sockets(), Listen: b.around.Listen, Clock: b.clock, Log: b.log,
	})
	return server, b.addUnless(err, "sockets", server.Run)
}

// readMetrics sets the sources of metrics that are read at each scrape.
func (p *pods) readMetrics(ctx context.Context, b *base) error {
	b.cfg.Gates(b.metrics.FeatureGate)
	return b.metrics.RegisterSources(metrics.Sources{
		Desired: p.desired.List, MirrorPods: p.desired.Mirrors, Active: p.workers.Active, Working: p.workers.PodStates,
		Observed: p.observer.List, LastRelist: p.observer.LastRelist, Volumes: p.volumes.Counts,
		PullRecords: p.images.Puller.RecordCounts, LogBytes: p.logs.Usage, Plugins: p.plugins.Sockets,
		ClaimStats:  func() []statsapi.VolumeStats { return p.stats.ClaimStats(ctx) },
		ClaimsInUse: p.managers.Claims.InUse, PendingResizes: p.allocator.Pending, ResizesInProgress: p.status.Resizing,
	})
}

// newWatchdog adds the watchdog if the service manager has enabled it.
func newWatchdog(b *base, healthy func() error) error {
	w, err := host.NewWatchdog(host.WatchdogDeps{Healthy: healthy, Clock: b.clock, Log: b.log})
	if w == nil {
		return err
	}
	return b.addUnless(err, "watchdog", w.Run)
}
