package dra

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// callTimeout bounds one call of a driver.
const callTimeout = 45 * time.Second

// Config is fixed for the life of the agent.
type Config struct {
	// RootDir holds the record of claims.
	RootDir string
	// Health has drivers tell the health of their devices, HealthMessages shows what they
	// say about it.
	Health, HealthMessages bool
	// OptionalOperations lets drivers leave out what their devices do not need.
	OptionalOperations bool
}

// API is what is asked of the API server.
type API interface {
	Claim(ctx context.Context, namespace, name string) (*resourceapi.ResourceClaim, error)
	// Drivers are those that offer devices of this node.
	Drivers(ctx context.Context) ([]string, error)
	// DeleteSlices deletes a driver's ResourceSlices of this node.
	DeleteSlices(ctx context.Context, driver string) error
}

// Meters measure; each may be nil.
type Meters struct {
	// Operation takes how long PrepareResources and UnprepareResources took for a pod.
	Operation meter.CallsOf
	// Call takes how long a driver took, by driver, method and status.
	Call func(driver, method, code string, took time.Duration)
}

// Deps are what the manager works with. API may be nil where there is none: then no claim
// can be prepared. Wake must not block.
type Deps struct {
	API API
	// Wake has a pod looked at again: a driver that it waits for is there, or the health of
	// its devices has changed.
	Wake   func(types.UID)
	Events pod.Events
	Meters Meters
	Clock  clock.WithTicker
	Log    *slog.Logger
}

// Manager knows the drivers and what they have prepared. It is safe for concurrent use.
type Manager struct {
	cfg  Config
	deps Deps

	// Each holds at most one: "a driver is new", "drivers have come or gone", "something new
	// was told of devices".
	arrived, poke, told notify.Signal

	mu       sync.Mutex
	drivers  map[string][]*driver // the latest last
	arrivals []*driver            // Run does not attend to them yet
	// left is when drivers were last seen, of those that offer devices and are not there.
	left   map[string]time.Time
	claims map[key]*claim
	// waiting are pods that could not be prepared.
	waiting map[types.UID]bool
	// health is what drivers said of their devices.
	health map[string]driverHealth

	saving sync.Mutex // orders writes of the record
}

// New reads what an earlier agent had prepared. It starts nothing.
func New(cfg Config, deps Deps) (*Manager, error) {
	if !filepath.IsAbs(cfg.RootDir) {
		return nil, errors.New("make claim manager: RootDir must be an absolute path")
	}
	if err := require.Set("make claim manager", map[string]any{
		"Wake": deps.Wake, "Events": deps.Events, "Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	m := &Manager{
		cfg: cfg, deps: deps,
		arrived: notify.New(),
		poke:    notify.New(),
		told:    notify.New(),
		drivers: map[string][]*driver{},
		left:    map[string]time.Time{},
		claims:  map[key]*claim{},
		waiting: map[types.UID]bool{},
		health:  map[string]driverHealth{},
	}
	if cfg.Health {
		m.restoreHealth()
	}
	return m, m.restore()
}

// InUse counts the claims that pods use, by driver, and all of them under anyDriver.
func (m *Manager) InUse() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	count := map[string]int{anyDriver: len(m.claims)}
	for _, c := range m.claims {
		for name := range c.DriverState {
			count[name]++
		}
	}
	return count
}

const anyDriver = "<any>"
