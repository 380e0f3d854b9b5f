package device

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/checkpoint"
	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/statefile"
)

// pluginGrace is how long the node still reports a resource after its plugin disconnected, and
// how long pods wait for the plugin.
const pluginGrace = 5 * time.Minute

// Config is fixed for the life of the agent.
type Config struct {
	// Dir holds the registration socket, the plugins' sockets and the checkpoint:
	// ROOT/device-plugins.
	Dir string
	// Nodes are the machine's NUMA nodes.
	Nodes numa.Nodes
	// AwaitPlugins makes pods wait for devices that no plugin offers, on a node without a
	// scheduler. Otherwise a pod starts without devices of an unknown resource.
	AwaitPlugins bool
}

// Meters measure; each may be nil.
type Meters struct {
	// Registered counts registrations on the socket, by resource.
	Registered meter.CountOf
	// Allocated times the plugins' Allocate calls, by resource.
	Allocated meter.TimingOf
}

// Deps are what the manager works with. Wake and Changed must not block.
type Deps struct {
	// Running reports whether the runtime has the container running.
	Running func(pod types.UID, container string) bool
	// Wake requeues a pod whose plugin reconnected or whose devices' health changed.
	Wake func(types.UID)
	// Changed is called when the node's devices changed.
	Changed func()
	// Listen opens the registration socket; nil opens a unix socket.
	Listen func(ctx context.Context, network, path string) (net.Listener, error)
	Events pod.Events
	Meters Meters
	Clock  clock.PassiveClock
	Log    *slog.Logger
}

// Manager tracks the node's devices and their allocations. It is safe for concurrent use.
type Manager struct {
	cfg  Config
	deps Deps

	watchers sync.WaitGroup // watch plugins; Run waits for them

	mu      sync.Mutex
	stopped bool // no more plugins may connect
	// resources have a plugin, or had one within pluginGrace.
	resources map[string]*resourceState
	// removed are resources whose plugin has been gone for longer than pluginGrace.
	removed     map[string]bool
	allocations allocations
	// affinity are the NUMA nodes that a container's devices should be on.
	affinity map[allocationKey]numa.Nodes
	// waiting are the pods that wait for plugins, with the resources that an event was recorded
	// for.
	waiting map[types.UID]string

	released     *statefile.Writer
	saveMu       sync.Mutex // serializes writes of the checkpoint
	savedDevices map[string][]string
}

// New restores the allocations of an earlier run of the agent. It starts nothing.
func New(cfg Config, deps Deps) (*Manager, error) {
	if !filepath.IsAbs(cfg.Dir) {
		return nil, errors.New("new device manager: Dir must be an absolute path")
	}
	if err := require.Set("new device manager", map[string]any{
		"Running": deps.Running, "Wake": deps.Wake, "Changed": deps.Changed, "Events": deps.Events,
		"Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	if deps.Listen == nil {
		deps.Listen = func(_ context.Context, _, path string) (net.Listener, error) { return listen(path) }
	}
	m := &Manager{
		cfg: cfg, deps: deps,
		resources:   map[string]*resourceState{},
		removed:     map[string]bool{},
		allocations: allocations{},
		affinity:    map[allocationKey]numa.Nodes{},
		waiting:     map[types.UID]string{},
	}
	checkpoint.Clean(cfg.Dir, deps.Log)
	m.released = statefile.NewWriter(m.save)
	return m, m.restore()
}

// Manages reports whether this manager allocates the resource.
func (m *Manager) Manages(name v1.ResourceName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.managesLocked(string(name))
}

func (m *Manager) managesLocked(resource string) bool {
	return m.resources[resource] != nil || m.allocations.has(resource) || m.cfg.AwaitPlugins && isExtended(resource)
}
