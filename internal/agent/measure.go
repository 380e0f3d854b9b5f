package agent

import (
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/metrics"
	"swiftlet/internal/server"
)

// readMetrics has what the parts of the agent know shown to those who ask.
func (a *Agent) readMetrics(claims func() []statsapi.VolumeStats) error {
	p := &a.pods
	return a.metrics.Read(metrics.Sources{
		Desired:    p.desired.List,
		Active:     p.workers.Active,
		Mirrors:    p.desired.Mirrors,
		Working:    p.workers.Standings,
		Observed:   p.observer.List,
		LastRelist: p.observer.LastRelist,
		Volumes:    p.volumes.Tally,
		Pulls:      p.images.Recorded,
		LogBytes:   p.logs.Usage,
		Plugins:    p.plugins.Sockets,
		Claims:     claims,

		ClaimsInUse: p.claims.InUse,
		Pending:     p.allocator.Pending,
		Resizing:    a.resizing,
	})
}

// serverMeters measure the node's API.
func (a *Agent) serverMeters() server.Meters {
	begin := a.metrics.HTTP()
	meters := server.Meters{
		Request:     func(r server.Request) func() { return begin(r.ReadOnly, r.Method, r.Path, r.LongRunning) },
		WebSocket:   a.metrics.WebSockets(),
		Certificate: a.metrics.Certificates(),
	}
	meters.TokenReview, meters.AccessReview = a.metrics.Reviews()
	meters.Tokens.Asked, meters.Tokens.Fetched, meters.Tokens.Waiting = a.metrics.Tokens()
	return meters
}
