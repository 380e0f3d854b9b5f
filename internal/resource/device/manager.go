package device

import (
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
	"swiftlet/internal/resource/numa"
)

// grace is for how long a resource whose plugin has left still counts as the node's, and
// pods that need it wait for the plugin.
const grace = 5 * time.Minute

// Config is fixed for the life of the agent.
type Config struct {
	// Dir holds the registration socket, the plugins' sockets and the checkpoint:
	// ROOT/device-plugins.
	Dir string
	// Nodes are the machine's NUMA nodes.
	Nodes numa.Nodes
}

// Meters measure; each may be nil.
type Meters struct {
	// Registered counts the registrations on the socket, by resource.
	Registered meter.CountOf
	// Allocated takes how long plugins took to allocate, by resource.
	Allocated meter.TimingOf
}

// Deps are what the manager works with. Wake and Changed must not block.
type Deps struct {
	// Running reports whether the runtime has the container running.
	Running func(pod types.UID, container string) bool
	// Wake has a pod looked at again: its plugin is back, or the health of one of its
	// devices has changed.
	Wake func(types.UID)
	// Changed is told that the node has more, fewer or other devices.
	Changed func()
	Events  pod.Events
	Meters  Meters
	Clock   clock.PassiveClock
	Log     *slog.Logger
}

// Manager knows the node's devices and who has them. It is safe for concurrent use.
type Manager struct {
	cfg  Config
	deps Deps

	following sync.WaitGroup // of plugins; Run waits for it

	mu    sync.Mutex
	ended bool // no plugin is to be followed any more
	// resources are those that have a plugin, or had one within the grace.
	resources map[string]*stock
	// removed had a plugin once.
	removed map[string]bool
	grants  grants
	// where are the NUMA nodes that a container's devices are to be on.
	where map[place]numa.Nodes
	// checked are the pods whose devices of an earlier agent's time were found to be there.
	checked map[types.UID]bool
	// waiting are the pods that wait for a plugin, with the resource that the user was told of.
	waiting map[types.UID]string

	saving sync.Mutex // orders writes of the checkpoint
	saved  map[string][]string
}

// New reads what an earlier agent has given out. It starts nothing.
func New(cfg Config, deps Deps) (*Manager, error) {
	if !filepath.IsAbs(cfg.Dir) {
		return nil, errors.New("make device manager: Dir must be an absolute path")
	}
	if err := require.Set("make device manager", map[string]any{
		"Running": deps.Running, "Wake": deps.Wake, "Changed": deps.Changed, "Events": deps.Events,
		"Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	m := &Manager{
		cfg: cfg, deps: deps,
		resources: map[string]*stock{},
		removed:   map[string]bool{},
		grants:    grants{},
		where:     map[place]numa.Nodes{},
		checked:   map[types.UID]bool{},
		waiting:   map[types.UID]string{},
	}
	return m, m.restore()
}

// Gives reports whether the resource is one that this manager gives out.
func (m *Manager) Gives(name v1.ResourceName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gives(string(name))
}

// gives is called under the lock.
func (m *Manager) gives(resource string) bool {
	return m.resources[resource] != nil || m.grants.has(resource)
}
