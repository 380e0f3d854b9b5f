package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/clock"

	"swiftlet/internal/require"
)

// Config says where to serve and whom to trust.
type Config struct {
	NodeName string
	// CertDir keeps the self-signed certificate, kubelet.crt and kubelet.key, of a node
	// that was given none.
	CertDir string
	// SystemLogDir is served below /logs/. Default /var/log.
	SystemLogDir string
	// Kubelet is the complete configuration, as config.Load returns it.
	Kubelet *kubelet.KubeletConfiguration
	// SplitLogStreams lets clients ask for one stream of a log (PodLogsQuerySplitStreams).
	SplitLogStreams bool
	// WebSockets has WebSocket clients served here rather than by the API server
	// (ExtendWebSocketsToKubelet).
	WebSockets bool
	// AllocatedPods opens /allocatedPods (KubeletAllocatedPodsEndpoint).
	AllocatedPods bool
	// Checkpoints opens /checkpoint (ContainerCheckpoint); CheckpointDir gets what is written.
	Checkpoints   bool
	CheckpointDir string
	// Statusz opens /statusz, and Flagz /flagz, which shows Flags (ComponentStatusz and
	// ComponentFlagz).
	Statusz, Flagz bool
	Flags          map[string]string
}

// Pods tells what runs on the node. Both may be called at any time.
type Pods interface {
	// Pods are the pods that are wanted here, with their status.
	Pods() *v1.PodList
	// RunningPods are the pods that the runtime has, wanted or not.
	RunningPods(ctx context.Context) (*v1.PodList, error)
}

// Deps are what the server is made of.
type Deps struct {
	Log     *slog.Logger
	Clock   clock.Clock
	Pods    Pods
	Metrics prometheus.Gatherer
	Meters  Meters
	// Trace stands around what serves the requests that the guard lets through; may be nil.
	Trace func(http.Handler) http.Handler
	// ProbeMetrics tell how probes went, SLIs how health checks did.
	ProbeMetrics prometheus.Gatherer
	SLIs         SLIs
	Stats        Stats

	// Containers, Logs and Runtime are the ways into pods.
	Containers Containers
	Logs       Logs
	Runtime    Runtime
	// SetVerbosity changes how much is logged; nil where that cannot be changed.
	SetVerbosity func(level string) error

	// Checks are asked by /healthz of the HTTPS API, besides ping and log.
	Checks []Check

	// TokenReviews and AccessReviews reach the API server; nil when there is none. Then
	// bearer tokens are worth nothing, and in Webhook mode only certificates of the group
	// system:masters are served.
	TokenReviews  TokenReviewer
	AccessReviews AccessReviewer

	// Certificate is the serving certificate when the API server issues it
	// (serverTLSBootstrap); nil otherwise.
	Certificate Certifier
	// Listen opens the ports; nil means the network.
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
}

// Server is the agent's face to the network.
type Server struct {
	cfg    Config
	deps   Deps
	routes []route // every row of the table, enabled or not
	guard  *guard
	// started is when the program came up, more or less.
	started time.Time
	// streams are the connections that were taken over from the HTTP server.
	streams sync.WaitGroup
}

// New checks the configuration. Nothing is opened before Run.
func New(cfg Config, deps Deps) (*Server, error) {
	if err := require.Set("make server", map[string]any{
		"Log": deps.Log, "Clock": deps.Clock, "Pods": deps.Pods, "Metrics": deps.Metrics,
		"Containers": deps.Containers, "Logs": deps.Logs, "Runtime": deps.Runtime,
		"Stats": deps.Stats, "ProbeMetrics": deps.ProbeMetrics, "SLIs": deps.SLIs,
	}); err != nil {
		return nil, err
	}
	switch {
	case cfg.NodeName == "":
		return nil, errors.New("make server: no node name")
	case cfg.Kubelet == nil:
		return nil, errors.New("make server: no configuration")
	case cfg.Checkpoints && cfg.CheckpointDir == "":
		return nil, errors.New("make server: no folder for checkpoints")
	}
	if cfg.SystemLogDir == "" {
		cfg.SystemLogDir = "/var/log"
	}
	if deps.Listen == nil {
		deps.Listen = (&net.ListenConfig{}).Listen
	}
	s := &Server{cfg: cfg, deps: deps, started: deps.Clock.Now()}
	s.routes = s.routeTable()
	var err error
	if s.guard, err = newGuard(cfg, deps, s.routes); err != nil {
		return nil, err
	}
	return s, nil
}

// Run serves until ctx is done.
func (s *Server) Run(ctx context.Context) error {
	kc := s.cfg.Kubelet
	if *kc.EnableDebuggingHandlers && *kc.EnableProfilingHandler && kc.EnableContentionProfiling {
		runtime.SetBlockProfileRate(1)
	}
	group, ctx := errgroup.WithContext(ctx)
	if *kc.EnableServer {
		group.Go(func() error { return s.serveAPI(ctx) })
	}
	if kc.ReadOnlyPort > 0 {
		group.Go(func() error {
			return s.serve(ctx, "read-only", kc.Address, kc.ReadOnlyPort, s.measured(true, newMux(s.readOnlyRoutes())))
		})
	}
	if *kc.HealthzPort > 0 {
		group.Go(func() error { return s.keepHealthz(ctx) })
	}
	group.Go(func() error {
		<-ctx.Done()
		return nil
	})
	return group.Wait()
}

// keepHealthz serves the health check. It is tried again where it fails, because others
// decide by this port alone whether the agent lives, and a taken port may come free.
func (s *Server) keepHealthz(ctx context.Context) error {
	kc := s.cfg.Kubelet
	routes := newMux(s.healthRoutes(append([]Check{ping}, s.deps.Checks...)))
	for ctx.Err() == nil {
		err := s.serve(ctx, "healthz", kc.HealthzBindAddress, *kc.HealthzPort, routes)
		if err == nil {
			return nil
		}
		s.deps.Log.Error("health check is not served; trying again", "err", err)
		select {
		case <-ctx.Done():
		case <-s.deps.Clock.After(healthzRetry):
		}
	}
	return nil
}

func address(host string, port int32) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
