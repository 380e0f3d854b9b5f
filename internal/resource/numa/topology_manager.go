package numa

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/clock"

	"swiftlet/internal/config"
	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// Config configures the topology manager.
type Config struct {
	Policy, Scope string
	Options       Options
	Layout        Layout
	// PodLevel enables allocations for pods with pod-level resources.
	PodLevel bool
}

// Meters measure admission; each may be nil.
type Meters struct {
	Requests, Errors meter.Count
	Took             meter.Timing
	// Aligned and Misaligned count admissions under single-numa-node, by scope.
	Aligned, Misaligned meter.CountOf
}

// Deps are what an Aligner works with.
type Deps struct {
	// Providers are called in this order.
	Providers []Provider
	Meters    Meters
	Clock     clock.PassiveClock
	Log       *slog.Logger
}

// Aligner is the topology manager. It is safe for concurrent use.
type Aligner struct {
	cfg  Config
	deps Deps
	mu   sync.Mutex // admits one pod at a time
}

// New validates and starts nothing.
func New(cfg Config, deps Deps) (*Aligner, error) {
	if err := require.Set("new topology manager", map[string]any{"Clock": deps.Clock, "Log": deps.Log}); err != nil {
		return nil, err
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if !cfg.Options.PreferClosest {
		cfg.Layout.Distances = nil
	}
	return &Aligner{cfg: cfg, deps: deps}, nil
}

// Check returns an error if the policy is not possible on the machine.
func (cfg Config) Check() error {
	switch cfg.Policy {
	case None:
		return nil
	case BestEffort, Restricted, SingleNode:
	default:
		return config.Invalid("topologyManagerPolicy", "unknown policy %q", cfg.Policy)
	}
	if cfg.Scope != ByContainer && cfg.Scope != ByPod {
		return config.Invalid("topologyManagerScope", "unknown scope %q", cfg.Scope)
	}
	if n := cfg.Layout.All.Count(); n == 0 || n > cfg.Options.MaxNodes {
		return config.Invalid("topologyManagerPolicy", "%s is not possible on this machine, which has %d NUMA nodes; at most %d are (option %s)",
			cfg.Policy, n, cfg.Options.MaxNodes, maxNodes)
	}
	return nil
}

// Policy and Scope return the configured values.
func (a *Aligner) Policy() string { return a.cfg.Policy }
func (a *Aligner) Scope() string  { return a.cfg.Scope }

// Admit allocates the resources of the pod's containers. What it allocated before a rejection
// stays allocated until Release.
func (a *Aligner) Admit(ctx context.Context, p *v1.Pod) *pod.Rejection {
	a.mu.Lock()
	defer a.mu.Unlock()
	began := a.deps.Clock.Now()
	a.deps.Meters.Requests.Inc()
	err := a.admit(ctx, p)
	a.deps.Meters.Took.Took(a.deps.Clock.Since(began).Truncate(time.Millisecond))
	if err == nil {
		return nil
	}
	if a.cfg.Policy != None {
		a.deps.Meters.Errors.Inc()
	}
	var rejection *pod.Rejection
	if errors.As(err, &rejection) {
		return rejection
	}
	return pod.RejectAllocation(err)
}

func (a *Aligner) admit(ctx context.Context, p *v1.Pod) error {
	podLevel := a.cfg.PodLevel && resourcehelper.IsPodLevelResourcesSet(p)
	switch {
	case a.cfg.Policy == None:
		return a.eachContainer(p, func(c *v1.Container) error { return a.allocate(ctx, p, c, Hint{}) })
	case a.cfg.Scope == ByPod:
		return a.admitPod(ctx, p, podLevel)
	}
	return a.eachContainer(p, func(c *v1.Container) error { return a.admitContainer(ctx, p, c, podLevel) })
}

// admitContainer merges the hints for one container and allocates its resources.
func (a *Aligner) admitContainer(ctx context.Context, p *v1.Pod, c *v1.Container, podLevel bool) error {
	var all []Hints
	for _, provider := range a.deps.Providers {
		all = append(all, provider.Hints(p, c))
	}
	hint, ok := mergeByPolicy(a.cfg.Policy, a.cfg.Layout, all)
	a.deps.Log.Debug("topology manager: best hint for container", "podUID", p.UID, "container", c.Name, "nodes", hint.Nodes, "preferred", hint.Preferred)
	if !ok {
		a.countMisaligned()
		if podLevel {
			return affinityError("Pod Scope pod with pod-level resources failed admission with a container-level topology manager")
		}
		return affinityError("Resources cannot be allocated with Topology locality")
	}
	if err := a.allocate(ctx, p, c, hint); err != nil {
		return err
	}
	a.countAligned()
	return nil
}

// admitPod merges the hints for the pod and allocates all containers by the same hint.
func (a *Aligner) admitPod(ctx context.Context, p *v1.Pod, podLevel bool) error {
	var all []Hints
	for _, provider := range a.deps.Providers {
		all = append(all, provider.PodHints(p))
	}
	hint, ok := mergeByPolicy(a.cfg.Policy, a.cfg.Layout, all)
	a.deps.Log.Debug("topology manager: best hint for pod", "podUID", p.UID, "nodes", hint.Nodes, "preferred", hint.Preferred)
	if !ok {
		a.countMisaligned()
		if podLevel {
			return affinityError("Pod Scope pod with pod-level resources failed admission under pod-scope topology manager")
		}
		return affinityError("Resources cannot be allocated with Topology locality")
	}
	err := a.eachContainer(p, func(c *v1.Container) error {
		if podLevel {
			return nil
		}
		return a.allocate(ctx, p, c, hint)
	})
	if podLevel {
		err = a.allocatePod(ctx, p, hint)
	}
	if err != nil {
		return err
	}
	a.countAligned()
	return nil
}

func (a *Aligner) allocate(ctx context.Context, p *v1.Pod, c *v1.Container, hint Hint) error {
	for _, provider := range a.deps.Providers {
		if err := provider.Allocate(ctx, p, c, hint); err != nil {
			return err
		}
	}
	return nil
}

// allocatePod allocates pod-level resources where the provider supports it, else by container.
func (a *Aligner) allocatePod(ctx context.Context, p *v1.Pod, hint Hint) error {
	for _, provider := range a.deps.Providers {
		var err error
		if podProvider, ok := provider.(PodProvider); ok {
			err = podProvider.AllocatePod(ctx, p, hint)
		} else {
			err = a.eachContainer(p, func(c *v1.Container) error { return provider.Allocate(ctx, p, c, hint) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eachContainer visits init containers first, in the order in which they run.
func (a *Aligner) eachContainer(p *v1.Pod, visit func(*v1.Container) error) error {
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if err := visit(&list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Release releases the pod's resources.
func (a *Aligner) Release(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, provider := range a.deps.Providers {
		provider.Release(uid)
	}
}

func (a *Aligner) countAligned() {
	if a.cfg.Policy == SingleNode {
		a.deps.Meters.Aligned.Inc(a.cfg.Scope)
	}
}

func (a *Aligner) countMisaligned() {
	if a.cfg.Policy == SingleNode {
		a.deps.Meters.Misaligned.Inc(a.cfg.Scope)
	}
}

func affinityError(message string) error { return pod.Reject("TopologyAffinityError", "%s", message) }
