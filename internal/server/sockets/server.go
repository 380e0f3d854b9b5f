package sockets

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	resourcesv1alpha1 "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
	"k8s.io/utils/clock"

	"swiftlet/internal/require"
)

// Config is the configuration of a Server.
type Config struct {
	RootDir string
	// ActivePods limits PodResources v1 to pods that are not terminal
	// (KubeletPodResourcesListUseActivePods).
	ActivePods bool
	// PodLevel adds pod-level resources to it (PodLevelResourceManagers).
	PodLevel bool
	// PodsAPI serves the Pods socket (PodsAPI).
	PodsAPI bool
}

// Pods lists the desired pods. Its methods are safe for concurrent use.
type Pods interface {
	// Ready reports whether every pod source has reported.
	Ready() bool
	List() []*v1.Pod
	// Active omits terminal pods.
	Active() []*v1.Pod
	ByName(namespace, name string) (*v1.Pod, bool)
	Get(uid types.UID) (*v1.Pod, bool)
}

// Statuses holds the status last derived for each pod; status.Publisher implements it.
type Statuses interface {
	Get(uid types.UID) (v1.PodStatus, bool)
	// Subscribe calls f after each change of a status.
	Subscribe(f func())
}

// Deps are the dependencies of a Server. Devices, CPUs, Memory and Claims may be nil if noProvider of
// the kind is allocated to pods.
type Deps struct {
	Pods     Pods
	Statuses Statuses
	Devices  Devices
	CPUs     CPUs
	Memory   Memory
	Claims   Claims
	// Called counts finished calls; may be nil.
	Called func(fullMethod string, err error)
	// Listen opens a socket; nil opens a unix socket.
	Listen func(ctx context.Context, network, path string) (net.Listener, error)
	Clock  clock.Clock
	Log    *slog.Logger
}

// Server serves the APIs.
type Server struct {
	cfg      Config
	deps     Deps
	watchers watchers
}

// New validates the configuration. Run opens the sockets.
func New(cfg Config, deps Deps) (*Server, error) {
	if err := require.Set("new sockets server", map[string]any{
		"Pods": deps.Pods, "Statuses": deps.Statuses, "Clock": deps.Clock, "Log": deps.Log,
		"RootDir": cfg.RootDir,
	}); err != nil {
		return nil, err
	}
	if deps.Devices == nil {
		deps.Devices = noProvider{}
	}
	if deps.CPUs == nil {
		deps.CPUs = noProvider{}
	}
	if deps.Memory == nil {
		deps.Memory = noProvider{}
	}
	if deps.Claims == nil {
		deps.Claims = noProvider{}
	}
	if deps.Called == nil {
		deps.Called = func(string, error) {}
	}
	if deps.Listen == nil {
		deps.Listen = func(ctx context.Context, _, path string) (net.Listener, error) { return listen(ctx, path) }
	}
	s := &Server{cfg: cfg, deps: deps}
	deps.Statuses.Subscribe(s.Notify)
	return s, nil
}

// Notify makes watches of pods compare again. It does not block. The server subscribes to status
// changes itself.
func (s *Server) Notify() { s.watchers.notify() }

// Run serves until ctx is done or a socket fails.
func (s *Server) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return s.serve(ctx, filepath.Join(s.cfg.RootDir, "pod-resources", "kubelet.sock"), func(r grpc.ServiceRegistrar) {
			resourcesv1.RegisterPodResourcesListerServer(r, &podResources{Server: s})
			resourcesv1alpha1.RegisterPodResourcesListerServer(r, &podResourcesV1alpha1{Server: s})
		})
	})
	if s.cfg.PodsAPI {
		group.Go(func() error {
			return s.serve(ctx, filepath.Join(s.cfg.RootDir, "pods-api", "pods-api.sock"), func(r grpc.ServiceRegistrar) {
				podsv1alpha1.RegisterPodsServer(r, &podsAPI{Server: s, stopping: ctx.Done()})
			})
		})
	}
	return group.Wait()
}
