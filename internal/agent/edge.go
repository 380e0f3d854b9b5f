package agent

import (
	"context"
	"net/http"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/metrics"
	"swiftlet/internal/server"
	"swiftlet/internal/server/sockets"
)

// edge is what others see of the node.
type edge struct {
	view    *server.PodView
	sockets *sockets.Server
	parts   []part
}

func (a *Agent) makeEdge(ctx context.Context) error {
	if err := a.readMetrics(func() []statsapi.VolumeStats { return a.pods.stats.Claims(ctx) }); err != nil {
		return err
	}
	a.cfg.Gates(a.metrics.Gate)
	probes := prometheus.NewRegistry()
	probes.MustRegister(a.pods.probes, startTime())
	deps := server.Deps{
		Log:        a.log,
		Clock:      a.clock,
		Pods:       a.edge.view,
		Metrics:    a.metrics.Gatherer(),
		Meters:     a.serverMeters(),
		Checks:     []server.Check{{Name: "syncloop", Check: func(*http.Request) error { return a.pods.loop.Healthy() }}},
		Containers: a.edge.view,
		Logs:       a.pods.logs,
		Runtime:    a.cri,
		Stats:      a.pods.stats,

		ProbeMetrics: probes,
		SLIs:         metrics.NewSLIs(startTime()),
		SetVerbosity: a.opts.SetVerbosity,
	}
	if a.tracing != nil {
		deps.Trace = a.tracing.HTTP
	}
	if c := a.api.clients; c != nil {
		deps.TokenReviews = c.Kube.AuthenticationV1().TokenReviews()
		deps.AccessReviews = c.Kube.AuthorizationV1().SubjectAccessReviews()
	}
	if a.api.serving != nil {
		deps.Certificate = a.api.serving
	}
	s, err := server.New(server.Config{
		NodeName:        a.name,
		CertDir:         a.cfg.Flags.CertDir,
		Kubelet:         &a.cfg.Kubelet,
		SplitLogStreams: a.cfg.Features.PodLogsQuerySplitStreams,
		WebSockets:      a.cfg.Features.ExtendWebSocketsToKubelet,
		AllocatedPods:   a.cfg.Features.KubeletAllocatedPodsEndpoint,
		Checkpoints:     a.cfg.Features.ContainerCheckpoint,
		CheckpointDir:   filepath.Join(a.cfg.Flags.RootDir, "checkpoints"),
		Statusz:         a.cfg.Features.ComponentStatusz,
		Flagz:           a.cfg.Features.ComponentFlagz,
		Flags:           a.cfg.FlagValues,
	}, deps)
	if err != nil {
		return err
	}
	a.edge.parts = append(a.edge.parts, part{"server", s.Run})
	return a.makeSockets()
}
