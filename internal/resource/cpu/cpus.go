package cpu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"swiftlet/internal/checkpoint"
	"swiftlet/internal/config"
	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/statefile"
	"swiftlet/internal/resource/topology"
)

// CPU manager policies.
const (
	None   = "none"
	Static = "static"
)

// Config configures the CPU manager.
type Config struct {
	Policy  string
	Options Options
	Machine *topology.Machine
	// Reserved are never allocated exclusively; if empty, New chooses ReservedCount CPUs.
	Reserved      cpuset.CPUSet
	ReservedCount int
	// PodLevel enables exclusive CPUs for pods with pod-level resources.
	PodLevel bool
	// Path is the state file.
	Path string
}

// Meters measure; each may be nil.
type Meters struct {
	Requests, Errors meter.Count
	// Aligned and Misaligned count allocations by alignment boundary.
	Aligned, Misaligned meter.CountOf
}

// Alignment boundaries: values of a metric's label.
const (
	WholeCores = "physical_cpu"
	OneCache   = "uncore_cache"
)

// Deps are what CPUs works with.
type Deps struct {
	// Running lists the CPUs of running containers. New calls it only if the state file is
	// corrupt.
	Running func() ([]Running, error)
	// WarnNode records a warning event about the node.
	WarnNode func(reason, message string)
	// Changed is called when the shared pool has changed. It must not block.
	Changed func()
	Meters  Meters
	Log     *slog.Logger
}

// CPUs is the CPU manager. It is safe for concurrent use.
type CPUs struct {
	cfg    Config
	deps   Deps
	policy staticPolicy
	// resetAffinity is set under the policy none if the static policy of an earlier run pinned
	// containers, which may use all CPUs now.
	resetAffinity bool

	file *statefile.Writer

	mu    sync.Mutex
	state State
}

// New restores the allocations of an earlier run of the agent. It starts nothing.
func New(cfg Config, deps Deps) (*CPUs, error) {
	if err := require.Set("new CPU manager", map[string]any{
		"Machine": cfg.Machine, "Running": deps.Running, "WarnNode": deps.WarnNode, "Changed": deps.Changed,
		"Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(cfg.Path) {
		return nil, errors.New("new CPU manager: Path must be an absolute path")
	}
	c := &CPUs{cfg: cfg, deps: deps}
	c.file = statefile.NewWriter(func() error { return c.write(c.snapshot()) })
	var err error
	if c.policy, err = cfg.policy(); err != nil {
		return nil, err
	}
	if cfg.Policy == None {
		return c, c.leaveStaticPolicy()
	}
	if c.state, err = c.load(); err != nil {
		return nil, err
	}
	c.deps.Log.Info("CPU manager: static policy enabled", "reserved", c.policy.reserved, "shared", c.state.Shared, "allocated", c.state.allocated())
	// The agent starts on a full disk, too: every allocation is written before it is used.
	if err := c.write(c.state); err != nil {
		c.deps.Log.Error("CPU manager: cannot write state file", "err", err)
	}
	return c, nil
}

// Check returns an error if the policy is not possible on the machine. It changes nothing.
func (cfg Config) Check() error {
	_, err := cfg.policy()
	return err
}

// policy returns the static policy; empty if the policy is none.
func (cfg Config) policy() (staticPolicy, error) {
	switch cfg.Policy {
	case None:
		return staticPolicy{}, nil
	case Static:
		return newStaticPolicy(cfg.Machine, cfg.Options, cfg.Reserved, cfg.ReservedCount, cfg.PodLevel)
	}
	return staticPolicy{}, config.Invalid("cpuManagerPolicy", "unknown policy %q", cfg.Policy)
}

// leaveStaticPolicy moves the state file of a static policy aside, and makes the agent reset the
// CPU affinity of containers.
func (c *CPUs) leaveStaticPolicy() error {
	policy, _, err := format.Read(c.cfg.Path)
	if err != nil && !errors.Is(err, statefile.ErrCorrupt) {
		return nil // the static policy was never used
	}
	if err == nil && policy == None {
		return nil
	}
	c.resetAffinity = true
	aside, err := statefile.SetAside(c.cfg.Path, ".old")
	c.deps.Log.Info("CPU manager: policy changed", "from", policy, "to", None, "path", aside)
	return err
}

// Static reports whether the policy is static.
func (c *CPUs) Static() bool { return c.cfg.Policy == Static }

// SetsAffinity reports whether the agent must set the CPU affinity of containers.
func (c *CPUs) SetsAffinity() bool { return c.Static() || c.resetAffinity }

// Hints implements numa.Provider.
func (c *CPUs) Hints(p *v1.Pod, container *v1.Container) numa.Hints {
	if !c.Static() {
		return nil
	}
	return c.policy.hints(c.snapshot(), p, container)
}

// PodHints implements numa.Provider.
func (c *CPUs) PodHints(p *v1.Pod) numa.Hints {
	if !c.Static() {
		return nil
	}
	return c.policy.podHints(c.snapshot(), p)
}

// Allocate implements numa.Provider.
func (c *CPUs) Allocate(_ context.Context, p *v1.Pod, container *v1.Container, hint numa.Hint) error {
	if !c.Static() || c.policy.requestedCPUs(p, container) == 0 {
		return nil
	}
	return c.update(p, func(s State) (State, error) { return c.policy.allocate(s, p, container, hint) })
}

// AllocatePod implements numa.PodProvider.
func (c *CPUs) AllocatePod(_ context.Context, p *v1.Pod, hint numa.Hint) error {
	if !c.Static() || c.policy.podRequestedCPUs(p) == 0 {
		return nil
	}
	return c.update(p, func(s State) (State, error) { return c.policy.allocatePod(s, p, hint) })
}

// Written returns when the allocations so far are in the state file. It must be called before they take effect.
func (c *CPUs) Written(ctx context.Context) error { return c.file.Written(ctx) }

// update applies a change in memory: the sync loop calls it. Written persists it.
func (c *CPUs) update(p *v1.Pod, change func(State) (State, error)) error {
	c.deps.Meters.Requests.Inc()
	c.mu.Lock()
	before := c.state
	next, err := change(before)
	if err == nil {
		c.state = next
		if len(next.Containers[p.UID]) != len(before.Containers[p.UID]) {
			c.file.Changed()
		}
	}
	c.mu.Unlock()
	if err != nil {
		c.deps.Meters.Errors.Inc()
		if c.cfg.Options.FullCores {
			c.deps.Meters.Misaligned.Inc(WholeCores)
		}
		return err
	}
	c.countAlignment(before, next, p.UID)
	if !next.Shared.Equals(before.Shared) {
		c.deps.Log.Info("CPU manager: allocated CPUs", "podUID", p.UID, "cpus", next.ofPod(p.UID), "shared", next.Shared)
		c.deps.Changed()
	}
	return nil
}

func (c *CPUs) countAlignment(before, next State, uid types.UID) {
	if c.cfg.Options.FullCores {
		c.deps.Meters.Aligned.Inc(WholeCores)
	}
	for name, cpus := range next.Containers[uid] {
		if _, had := before.Containers[uid][name]; !had && len(c.cfg.Machine.Parts(cpus, topology.ByCache)) <= 1 {
			c.deps.Meters.Aligned.Inc(OneCache)
		}
	}
}

// Release implements numa.Provider. Written persists it; if the agent ends before, the next one releases the CPUs of
// removed pods again.
func (c *CPUs) Release(uid types.UID) {
	c.mu.Lock()
	before := c.state
	if freed := before.ofPod(uid); freed.IsEmpty() {
		c.mu.Unlock()
		return
	}
	// CPUs that are now reserved or offline do not return to the shared pool.
	c.state = before.withoutPod(uid)
	c.state.Shared = c.state.Shared.Intersection(c.policy.sharedPool())
	c.file.Changed()
	c.mu.Unlock()
	c.deps.Log.Info("CPU manager: released CPUs", "podUID", uid, "cpus", before.ofPod(uid))
	c.deps.Changed()
}

func (c *CPUs) write(s State) error {
	raw, err := encode(c.cfg.Policy, s)
	if err == nil {
		err = checkpoint.Replace(c.cfg.Path, raw, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write CPU manager state: %w", err)
	}
	return nil
}

func (c *CPUs) snapshot() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

func (c *CPUs) warn(reason, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	c.deps.Log.Warn("CPU manager: state changed", "reason", reason, "message", message)
	c.deps.WarnNode(reason, message)
}

// hasExclusiveCPUs reports whether the container has exclusive CPUs. Containers of a pod with
// pod-level resources may share the pod's remaining CPUs.
func (c *CPUs) hasExclusiveCPUs(p *v1.Pod, container *v1.Container) bool {
	_, ok := c.snapshot().Containers[p.UID][container.Name]
	return ok && (!hasPodLevelResources(p) || c.policy.requestedCPUs(p, container) > 0)
}

// HasExclusiveCPUs reports whether the container has exclusive CPUs, so that it needs no CPU quota.
func (c *CPUs) HasExclusiveCPUs(p *v1.Pod, container *v1.Container) bool {
	return c.Static() && c.hasExclusiveCPUs(p, container)
}

// PodHasExclusiveCPUs reports whether the pod needs no CPU quota: one of its containers has
// exclusive CPUs or, with pod-level resources, all have.
func (c *CPUs) PodHasExclusiveCPUs(p *v1.Pod) bool {
	if !c.Static() {
		return false
	}
	some, all := false, true
	for container, kind := range pod.Containers(p) {
		if kind != pod.Ephemeral {
			alone := c.hasExclusiveCPUs(p, container)
			some, all = some || alone, all && alone
		}
	}
	return some && (all || !hasPodLevelResources(p))
}
