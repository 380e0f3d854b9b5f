package agent

import (
	"context"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/metrics"
	"swiftlet/internal/server"
	"swiftlet/internal/server/sockets"
)

// newServers adds what others see of the node.
func newServers(ctx context.Context, b *base, a *api, r runtimeClient, p *pods) error {
	view, err := server.NewPodView(server.PodViewDeps{Desired: p.desired, Observer: p.observer, Statuses: p.status})
	if err != nil {
		return err
	}
	if b.opts.Show != nil {
		b.add("board", server.NewBoard(view, b.opts.Show, b.opts.Forget).Run)
	}
	if err := p.readMetrics(ctx, b); err != nil {
		return err
	}
	probes := prometheus.NewRegistry()
	probes.MustRegister(p.probes, metrics.StartTime())
	deps := server.Deps{
		Log:        b.log,
		Clock:      b.clock,
		Pods:       view,
		Metrics:    b.metrics.Gatherer(),
		Meters:     serverMeters(b.metrics),
		Checks:     []server.Check{{Name: "syncloop", Check: func(*http.Request) error { return p.loop.Healthy() }}},
		Containers: view,
		Logs:       p.logs,
		Runtime:    r.cri,
		Stats:      p.stats,

		ProbeMetrics: probes,
		SLIs:         metrics.NewSLIs(metrics.StartTime()),
		SetVerbosity: b.opts.SetVerbosity,
	}
	if b.tracing != nil {
		deps.Trace = b.tracing.HTTP
	}
	if c := a.clients; c != nil {
		deps.TokenReviews = c.Kube.AuthenticationV1().TokenReviews()
		deps.AccessReviews = c.Kube.AuthorizationV1().SubjectAccessReviews()
	}
	if a.serving != nil {
		deps.Certificate = a.serving
	}
	s, err := server.New(server.ConfigFrom(b.cfg, b.nodeName), deps)
	if err := b.addUnless(err, "server", s.Run); err != nil {
		return err
	}
	return newWatchdog(b, p.loop.Healthy)
}

// makeSockets makes the API for programs on the node.
func (p *pods) makeSockets(b *base, m *machine) (err error) {
	p.sockets, err = sockets.New(sockets.ConfigFrom(b.cfg), sockets.Deps{
		Pods:     sockets.LocalPods{Pods: p.desired, Workers: p.workers},
		CPUs:     m.CPUs,
		Memory:   m.Memory,
		Statuses: p.status,
		Devices:  p.managers.Devices,
		Claims:   p.managers.Claims,
		Called:   b.metrics.Sockets(),
		Clock:    b.clock,
		Log:      b.log,
	})
	return b.addUnless(err, "sockets", p.sockets.Run)
}

// readMetrics connects the metrics that are read when they are scraped.
func (p *pods) readMetrics(ctx context.Context, b *base) error {
	b.cfg.Gates(b.metrics.Gate)
	return b.metrics.Read(metrics.Sources{
		Desired:    p.desired.List,
		Active:     p.workers.Active,
		Mirrors:    p.desired.Mirrors,
		Working:    p.workers.Standings,
		Observed:   p.observer.List,
		LastRelist: p.observer.LastRelist,
		Volumes:    p.volumes.Tally,
		Pulls:      p.puller.Recorded,
		LogBytes:   p.logs.Usage,
		Plugins:    p.plugins.Sockets,
		Claims:     func() []statsapi.VolumeStats { return p.stats.Claims(ctx) },

		ClaimsInUse: p.managers.Claims.InUse,
		Pending:     p.allocator.Pending,
		Resizing:    p.resizing,
	})
}

// resizing counts the pods that do not have yet the resources that they were allocated.
func (p *pods) resizing() (n int) {
	for _, desired := range p.desired.List() {
		shown, _ := p.status.Get(desired.UID)
		if slices.ContainsFunc(shown.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodResizeInProgress }) {
			n++
		}
	}
	return n
}

// serverMeters measure the node's API.
func serverMeters(m *metrics.Metrics) server.Meters {
	begin := m.HTTP()
	meters := server.Meters{
		Request:     func(r server.Request) func() { return begin(r.ReadOnly, r.Method, r.Path, r.LongRunning) },
		WebSocket:   m.WebSockets(),
		Certificate: m.Certificates(),
	}
	meters.TokenReview, meters.AccessReview = m.Reviews()
	meters.Tokens.Asked, meters.Tokens.Fetched, meters.Tokens.Waiting = m.Tokens()
	return meters
}
