package sockets

import (
	"context"
	"log/slog"
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

// Config says what is served and where.
type Config struct {
	RootDir string
	// ActivePods has PodResources v1 list only pods that may still hold something
	// (KubeletPodResourcesListUseActivePods).
	ActivePods bool
	// PodLevel has it show what whole pods were given (PodLevelResourceManagers).
	PodLevel bool
	// PodsAPI opens the Pods socket (PodsAPI).
	PodsAPI bool
}

// Pods are those wanted here. Its methods may be called at any time.
type Pods interface {
	// Ready reports whether every source of pods was heard.
	Ready() bool
	List() []*v1.Pod
	// Active leaves out those that have ended for good.
	Active() []*v1.Pod
	ByName(namespace, name string) (*v1.Pod, bool)
	Get(uid types.UID) (*v1.Pod, bool)
}

// Statuses are as last derived here; status.Publisher has them.
type Statuses interface {
	Get(uid types.UID) (v1.PodStatus, bool)
	// Subscribe has f called after each change of any status.
	Subscribe(f func())
}

// Deps are what the sockets are connected to. Who gives out devices, CPUs, memory or claims
// may be missing; then nothing of the kind was given to any pod.
type Deps struct {
	Pods     Pods
	Statuses Statuses
	Devices  Devices
	CPUs     CPUs
	Memory   Memory
	Claims   Claims
	// Called is told of each call that has ended, for statistics; may be nil.
	Called func(fullMethod string, err error)
	Clock  clock.Clock
	Log    *slog.Logger
}

// Server serves the sockets.
type Server struct {
	cfg      Config
	deps     Deps
	watchers watchers
}

// New validates; nothing is opened before Run.
func New(cfg Config, deps Deps) (*Server, error) {
	if err := require.Set("make sockets", map[string]any{
		"Pods": deps.Pods, "Statuses": deps.Statuses, "Clock": deps.Clock, "Log": deps.Log,
		"RootDir": cfg.RootDir,
	}); err != nil {
		return nil, err
	}
	if deps.Devices == nil {
		deps.Devices = nothing{}
	}
	if deps.CPUs == nil {
		deps.CPUs = nothing{}
	}
	if deps.Memory == nil {
		deps.Memory = nothing{}
	}
	if deps.Claims == nil {
		deps.Claims = nothing{}
	}
	if deps.Called == nil {
		deps.Called = func(string, error) {}
	}
	s := &Server{cfg: cfg, deps: deps}
	deps.Statuses.Subscribe(s.Poke)
	return s, nil
}

// Poke has watchers of pods look again. It does not block. Changes of status need no poke.
func (s *Server) Poke() { s.watchers.wake() }

// Run serves until ctx ends or a socket cannot be served.
func (s *Server) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return s.serve(ctx, filepath.Join(s.cfg.RootDir, "pod-resources", "kubelet.sock"), func(r grpc.ServiceRegistrar) {
			resourcesv1.RegisterPodResourcesListerServer(r, &resources{Server: s})
			resourcesv1alpha1.RegisterPodResourcesListerServer(r, &oldResources{Server: s})
		})
	})
	if s.cfg.PodsAPI {
		group.Go(func() error {
			return s.serve(ctx, filepath.Join(s.cfg.RootDir, "pods-api", "pods-api.sock"), func(r grpc.ServiceRegistrar) {
				podsv1alpha1.RegisterPodsServer(r, &podsAPI{Server: s, ending: ctx.Done()})
			})
		})
	}
	return group.Wait()
}
