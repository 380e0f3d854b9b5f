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

// callTimeout limits one call to a driver.
const callTimeout = 45 * time.Second

// Config is fixed for the life of the agent.
type Config struct {
	// RootDir holds the checkpoints.
	RootDir string
	// Health makes the manager watch the health of devices; HealthMessages adds the drivers'
	// messages to the status.
	Health, HealthMessages bool
	// OptionalOperations allows claims whose devices skip node operations.
	OptionalOperations bool
	// PodGroupClaims allows claims that are owned by, or reserved for, the PodGroup of a pod.
	PodGroupClaims bool
}

// API reads claims and manages ResourceSlices through the API server.
type API interface {
	Claim(ctx context.Context, namespace, name string) (*resourceapi.ResourceClaim, error)
	// Drivers lists the drivers that have ResourceSlices of this node.
	Drivers(ctx context.Context) ([]string, error)
	// DeleteSlices deletes a driver's ResourceSlices of this node.
	DeleteSlices(ctx context.Context, driver string) error
}

// Meters measure; each may be nil.
type Meters struct {
	// Operation times PrepareResources and UnprepareResources per pod.
	Operation meter.CallsOf
	// Call times the calls to drivers by driver, method and status code.
	Call func(driver, method, code string, took time.Duration)
}

// Deps are what the manager works with. API may be nil: then no claim can be prepared.
type Deps struct {
	API API
	// Wake requeues a pod whose driver became available or whose devices' health changed. It
	// must not block.
	Wake   func(types.UID)
	Events pod.Events
	Meters Meters
	Clock  clock.WithTicker
	Log    *slog.Logger
}

// Manager tracks DRA drivers and prepared claims. It is safe for concurrent use.
type Manager struct {
	cfg  Config
	deps Deps

	driverAdded, driverLost, healthChanged notify.Signal

	mu         sync.Mutex
	drivers    map[string][]*driver // by name, the last registered last
	newDrivers []*driver            // registered, but not yet supervised by Run
	// absentSince is when a driver was last connected, for drivers that have ResourceSlices
	// but are not connected; zero if never.
	absentSince map[string]time.Time
	claims      map[key]*claim
	// waiting are the pods whose preparation failed.
	waiting map[types.UID]bool
	// health is the last reported health of devices, by driver.
	health map[string]driverHealth

	saveMu sync.Mutex // serializes writes of the checkpoints
}

// New reads the checkpoints of an earlier run. It starts nothing.
func New(cfg Config, deps Deps) (*Manager, error) {
	if !filepath.IsAbs(cfg.RootDir) {
		return nil, errors.New("new DRA manager: RootDir must be an absolute path")
	}
	if err := require.Set("new DRA manager", map[string]any{
		"Wake": deps.Wake, "Events": deps.Events, "Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	m := &Manager{
		cfg: cfg, deps: deps,
		driverAdded:   notify.New(),
		driverLost:    notify.New(),
		healthChanged: notify.New(),
		drivers:       map[string][]*driver{},
		absentSince:   map[string]time.Time{},
		claims:        map[key]*claim{},
		waiting:       map[types.UID]bool{},
		health:        map[string]driverHealth{},
	}
	if cfg.Health {
		m.restoreHealth()
	}
	return m, m.restore()
}

// InUse counts the claims that pods use, by driver, and the total under anyDriver.
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
