package cpu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"swiftlet/internal/checkpoint"
	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/statefile"
	"swiftlet/internal/resource/topology"
)

// The policies.
const (
	None   = "none"
	Static = "static"
)

// Config says what may be given.
type Config struct {
	Policy  string
	Options Options
	Machine *topology.Machine
	// Reserved are kept from containers that want CPUs of their own; where it is empty,
	// ReservedCount CPUs are chosen.
	Reserved      cpuset.CPUSet
	ReservedCount int
	// PodLevel has resources that a pod asks for as a whole given to it as a whole.
	PodLevel bool
	// Path is the state file.
	Path string
}

// Meters measure; each may be nil.
type Meters struct {
	Requests, Errors meter.Count
	// Aligned and Misaligned count allocations by what they were to be, and were, aligned to.
	Aligned, Misaligned meter.CountOf
}

// What allocations are aligned to.
const (
	WholeCores = "physical_cpu"
	OneCache   = "uncore_cache"
)

// Deps are what CPUs works with.
type Deps struct {
	// Running finds out which CPUs containers run on. It is asked only if the state file
	// cannot be used.
	Running func() ([]Running, error)
	// Tell has the administrator see what happened to the state.
	Tell func(reason, message string)
	// Changed is told when the shared CPUs are other ones. It must not block.
	Changed func()
	Meters  Meters
	Log     *slog.Logger
}

// CPUs gives out CPUs. It is safe for concurrent use.
type CPUs struct {
	cfg   Config
	deps  Deps
	rules rules
	// loose: an earlier agent bound containers to CPUs, which are now free to use all.
	loose bool

	mu    sync.Mutex
	state State
}

// New reads what was given by an earlier agent. It starts nothing.
func New(cfg Config, deps Deps) (*CPUs, error) {
	if err := require.Set("make CPU manager", map[string]any{
		"Machine": cfg.Machine, "Running": deps.Running, "Tell": deps.Tell, "Changed": deps.Changed,
		"Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(cfg.Path) {
		return nil, errors.New("make CPU manager: Path must be an absolute path")
	}
	c := &CPUs{cfg: cfg, deps: deps}
	switch cfg.Policy {
	case None:
		return c, c.retire()
	case Static:
	default:
		return nil, fmt.Errorf("cpuManagerPolicy: there is no policy %q", cfg.Policy)
	}
	var err error
	if c.rules, err = newRules(cfg.Machine, cfg.Options, cfg.Reserved, cfg.ReservedCount, cfg.PodLevel); err != nil {
		return nil, err
	}
	if c.state, err = c.load(); err != nil {
		return nil, err
	}
	c.deps.Log.Info("CPUs can be given to containers alone", "reserved", c.rules.reserved, "shared", c.state.Shared, "given", c.state.taken())
	return c, c.write(c.state)
}

// retire ends what a static policy began: containers were bound to CPUs, and are to be let
// loose.
func (c *CPUs) retire() error {
	raw, err := os.ReadFile(c.cfg.Path)
	if err != nil {
		return nil // never was one
	}
	policy, _, err := decode(raw)
	if err == nil && policy == None {
		return nil
	}
	c.loose = true
	moved, err := statefile.SetAside(c.cfg.Path, ".old")
	c.deps.Log.Info("CPU manager policy changed", "from", policy, "to", None, "kept", moved)
	return err
}

// Static reports whether CPUs are given out at all.
func (c *CPUs) Static() bool { return c.cfg.Policy == Static }

// Binds reports whether containers run on less than they could, or have to be told that
// they no longer do.
func (c *CPUs) Binds() bool { return c.Static() || c.loose }

// Hints implements numa.Provider.
func (c *CPUs) Hints(p *v1.Pod, container *v1.Container) numa.Hints {
	if !c.Static() {
		return nil
	}
	return c.rules.hints(c.now(), p, container)
}

// PodHints implements numa.Provider.
func (c *CPUs) PodHints(p *v1.Pod) numa.Hints {
	if !c.Static() {
		return nil
	}
	return c.rules.podHints(c.now(), p)
}

// Allocate implements numa.Provider.
func (c *CPUs) Allocate(_ context.Context, p *v1.Pod, container *v1.Container, where numa.Hint) error {
	if !c.Static() || c.rules.wants(p, container) == 0 {
		return nil
	}
	return c.give(p, func(s State) (State, error) { return c.rules.allocate(s, p, container, where) })
}

// AllocatePod implements numa.PodProvider.
func (c *CPUs) AllocatePod(_ context.Context, p *v1.Pod, where numa.Hint) error {
	if !c.Static() || c.rules.podWants(p) == 0 {
		return nil
	}
	return c.give(p, func(s State) (State, error) { return c.rules.allocatePod(s, p, where) })
}

// give makes a change, once it is written down.
func (c *CPUs) give(p *v1.Pod, change func(State) (State, error)) error {
	c.deps.Meters.Requests.Inc()
	c.mu.Lock()
	before := c.state
	next, err := change(before)
	if err == nil && len(next.Given[p.UID]) != len(before.Given[p.UID]) {
		err = c.write(next)
	}
	if err == nil {
		c.state = next
	}
	c.mu.Unlock()
	if err != nil {
		c.deps.Meters.Errors.Inc()
		if c.cfg.Options.FullCores {
			c.deps.Meters.Misaligned.Inc(WholeCores)
		}
		return err
	}
	c.count(before, next, p.UID)
	if !next.Shared.Equals(before.Shared) {
		c.deps.Log.Info("CPUs given", "pod", p.UID, "cpus", next.of(p.UID), "shared", next.Shared)
		c.deps.Changed()
	}
	return nil
}

func (c *CPUs) count(before, next State, uid types.UID) {
	if c.cfg.Options.FullCores {
		c.deps.Meters.Aligned.Inc(WholeCores)
	}
	for name, cpus := range next.Given[uid] {
		if _, had := before.Given[uid][name]; !had && len(c.cfg.Machine.Parts(cpus, topology.ByCache)) <= 1 {
			c.deps.Meters.Aligned.Inc(OneCache)
		}
	}
}

// Release implements numa.Provider.
func (c *CPUs) Release(uid types.UID) {
	c.mu.Lock()
	before := c.state
	if freed := before.of(uid); freed.IsEmpty() {
		c.mu.Unlock()
		return
	}
	// Back to the pool, unless it is reserved now, or gone.
	c.state = before.without(uid)
	c.state.Shared = c.state.Shared.Intersection(c.rules.pool())
	err := c.write(c.state)
	c.mu.Unlock()
	if err != nil { // the next round of housekeeping of another agent would find it
		c.deps.Log.Error("the end of a pod's CPUs could not be written down", "pod", uid, "err", err)
	}
	c.deps.Log.Info("CPUs given back", "pod", uid, "cpus", before.of(uid))
	c.deps.Changed()
}

func (c *CPUs) write(s State) error {
	raw, err := encode(c.cfg.Policy, s)
	if err == nil {
		err = checkpoint.Replace(c.cfg.Path, raw, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the CPU state: %w", err)
	}
	return nil
}

func (c *CPUs) now() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

func (c *CPUs) tell(reason, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	c.deps.Log.Warn("CPU state", "reason", reason, "message", message)
	c.deps.Tell(reason, message)
}

// alone: among the containers of a pod that asked as a whole there are those that share
// its rest.
func (c *CPUs) alone(p *v1.Pod, container *v1.Container) bool {
	_, has := c.now().Given[p.UID][container.Name]
	return has && (!asWhole(p) || c.rules.wants(p, container) > 0)
}

// Alone reports whether the container is the only user of its CPUs: then no quota needs to
// hold it back.
func (c *CPUs) Alone(p *v1.Pod, container *v1.Container) bool {
	return c.Static() && c.alone(p, container)
}

// PodAlone reports whether the pod as a whole needs no quota: some of its containers are
// alone or, where it asked as a whole, all are.
func (c *CPUs) PodAlone(p *v1.Pod) bool {
	if !c.Static() {
		return false
	}
	some, all := false, true
	for container, kind := range pod.Containers(p) {
		if kind != pod.Ephemeral {
			alone := c.alone(p, container)
			some, all = some || alone, all && alone
		}
	}
	return some && (all || !asWhole(p))
}
