// Package surroundings has what the agent uses of the systems around it, so that a simulation can
// replace all of it.
package surroundings

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"

	"github.com/fsnotify/fsnotify"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/host"
	"swiftlet/internal/oom"
	"swiftlet/internal/volume"
	"swiftlet/internal/volume/mounts"
)

// Surroundings are runtime, API server and kernel. Fields that are nil in Machine may be nil.
type Surroundings struct {
	// Runtime connects to the container runtime; nil dials the configured endpoint.
	Runtime func(context.Context) (net.Conn, error)
	// API replaces the transport to the API server; nil means the network.
	API func(http.RoundTripper) http.RoundTripper
	// Cgroups finds the cgroup trees, PodCgroups makes those of pods, and Mounter mounts volumes.
	Cgroups    func() (cgroup.Hierarchy, error)
	PodCgroups func(perQOS bool, tree *cgroup.Tree, active func() []*v1.Pod) cgroup.PodCgroups
	Mounter    volume.Mounter
	// KernelLog opens the kernel log; the log may be nil.
	KernelLog func(oom.LogRules, *slog.Logger) (io.ReadCloser, error)
	// NewWatcher opens inotify, Listen a socket; nil means those of the kernel.
	NewWatcher func() (*fsnotify.Watcher, error)
	Listen     func(ctx context.Context, network, address string) (net.Listener, error)
	// Random returns random numbers in [0, 1).
	Random func() float64
	// Memory is the memory of the process; nil if others share the process.
	Memory host.Memory
}

// Machine returns the surroundings of the agent on this machine.
func Machine() Surroundings {
	return Surroundings{
		Cgroups: cgroup.Detect, PodCgroups: cgroup.NewPodCgroups, KernelLog: oom.OpenKernelLog,
		Mounter: &mounts.Kernel{}, Random: rand.Float64, Memory: &host.ProcessMemory{},
	}
}
