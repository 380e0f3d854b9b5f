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

	"swiftlet/internal/connlimit"
	"swiftlet/internal/require"
)

// Config is the configuration of a Server.
type Config struct {
	NodeName string
	// CertDir is where the server writes a self-signed certificate, kubelet.crt and
	// kubelet.key, if none is configured.
	CertDir string
	// SystemLogDir is served below /logs/. The default is /var/log.
	SystemLogDir string
	// Kubelet is the complete configuration, as config.Load returns it.
	Kubelet *kubelet.KubeletConfiguration
	// SplitLogStreams allows clients to select one stream of a log (PodLogsQuerySplitStreams).
	SplitLogStreams bool
	// WebSockets serves WebSocket clients here instead of in the API server
	// (ExtendWebSocketsToKubelet).
	WebSockets bool
	// AllocatedPods enables /allocatedPods (KubeletAllocatedPodsEndpoint).
	AllocatedPods bool
	// Checkpoints enables /checkpoint (ContainerCheckpoint), which writes to CheckpointDir.
	Checkpoints   bool
	CheckpointDir string
	// Statusz enables /statusz (ComponentStatusz). Flagz enables /flagz, which shows Flags
	// (ComponentFlagz).
	Statusz, Flagz bool
	Flags          map[string]string
	// CreateForUpgrades requires the verb create for exec, attach and port-forward by GET.
	CreateForUpgrades bool
	// Version is the version of Swiftlet, for /statusz.
	Version string

	limits limits // zero means the default
}

// Pods lists the pods of the node. Its methods are safe for concurrent use.
type Pods interface {
	// Pods lists the desired pods, with their status.
	Pods() *v1.PodList
	// RunningPods lists the pods that the runtime runs, desired or not.
	RunningPods(ctx context.Context) (*v1.PodList, error)
}

// Deps are the dependencies of a Server.
type Deps struct {
	Log     *slog.Logger
	Clock   clock.Clock
	Pods    Pods
	Metrics prometheus.Gatherer
	Meters  Meters
	// Trace wraps the handler of authorized requests in spans; may be nil.
	Trace func(http.Handler) http.Handler
	// ProbeMetrics are the metrics of probes, SLIs those of health checks.
	ProbeMetrics prometheus.Gatherer
	SLIs         SLIs
	Stats        Stats

	// Why serves /why; may be nil.
	Why Why
	// Page serves the page for people below /ui/; may be nil.
	Page http.Handler
	// Sessions lets people in who have a link to the page; with nil, everyone needs a credential.
	Sessions Sessions

	// Containers, Logs and Runtime serve logs, exec, attach and port-forward.
	Containers Containers
	Logs       Logs
	Runtime    Runtime
	// SetVerbosity changes the log verbosity; nil if it cannot be changed.
	SetVerbosity func(level string) error

	// Checks run on /healthz, in addition to ping and log.
	Checks []Check

	// TokenReviews and AccessReviews call the API server; nil if there is none. Bearer tokens
	// are then ignored, and Webhook mode allows only client certificates of the group
	// system:masters.
	TokenReviews  TokenReviewer
	AccessReviews AccessReviewer

	// Certificate is the serving certificate that the API server issues (serverTLSBootstrap);
	// nil otherwise.
	Certificate CertificateSource
	// Listen opens a port; nil uses the network.
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
}

// Server serves the kubelet's HTTP endpoints.
type Server struct {
	cfg    Config
	deps   Deps
	routes []route // every row of the table, enabled or not
	auth   *auth
	// connections of the HTTPS API.
	connections *connlimit.Connections
	rejected    *rejections
	// started approximates the start of the process.
	started time.Time
	// streams is locked for reading by each hijacked connection, which http.Server does not wait for.
	streams sync.RWMutex
}

// New validates the configuration. Run opens the ports.
func New(cfg Config, deps Deps) (*Server, error) {
	if err := require.Set("new server", map[string]any{
		"NodeName": cfg.NodeName, "Kubelet": cfg.Kubelet,
		"Log": deps.Log, "Clock": deps.Clock, "Pods": deps.Pods, "Metrics": deps.Metrics,
		"Containers": deps.Containers, "Logs": deps.Logs, "Runtime": deps.Runtime,
		"Stats": deps.Stats, "ProbeMetrics": deps.ProbeMetrics, "SLIs": deps.SLIs,
	}); err != nil {
		return nil, err
	}
	if cfg.Checkpoints && cfg.CheckpointDir == "" {
		return nil, errors.New("new server: missing CheckpointDir")
	}
	if cfg.SystemLogDir == "" {
		cfg.SystemLogDir = "/var/log"
	}
	if deps.Listen == nil {
		deps.Listen = (&net.ListenConfig{}).Listen
	}
	if cfg.limits == (limits{}) {
		cfg.limits = defaultLimits()
	}
	s := &Server{cfg: cfg, deps: deps, started: deps.Clock.Now(),
		rejected: newRejections(deps.Log, deps.Clock, deps.Meters.Rejected)}
	s.routes = s.routeTable()
	sources := newSources(deps.Clock, cfg.limits)
	s.connections = s.newConnections(cfg.limits, sources)
	var err error
	if s.auth, err = newAuth(cfg, deps, s.routes, cfg.limits, sources, s.rejected); err != nil {
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
			return s.serve(ctx, "read-only", kc.Address, kc.ReadOnlyPort, s.withMetrics(true, newMux(s.readOnlyRoutes())))
		})
	}
	if *kc.HealthzPort > 0 {
		group.Go(func() error { return s.serveHealthz(ctx) })
	}
	group.Go(func() error {
		<-ctx.Done()
		return nil
	})
	return group.Wait()
}

// serveHealthz serves the health check. It retries after a failure, because liveness checks of
// the kubelet use this port, and a port that is in use may become free.
func (s *Server) serveHealthz(ctx context.Context) error {
	kc := s.cfg.Kubelet
	mux := newMux(s.healthRoutes(append([]Check{ping}, s.deps.Checks...)))
	for ctx.Err() == nil {
		err := s.serve(ctx, "healthz", kc.HealthzBindAddress, *kc.HealthzPort, mux)
		if err == nil {
			return nil
		}
		s.deps.Log.Error("serve healthz: failed, retrying", "err", err)
		select {
		case <-ctx.Done():
		case <-s.deps.Clock.After(healthzRetryDelay):
		}
	}
	return nil
}

func address(host string, port int32) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
