package numa

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
)

// Config says how strictly a container's resources are to lie together.
type Config struct {
	Policy, Scope string
	Options       Options
	Layout        Layout
	// PodLevel has resources that a pod asks for as a whole given to it as a whole.
	PodLevel bool
}

// Meters measure admission; each may be nil.
type Meters struct {
	Requests, Errors meter.Count
	Took             meter.Timing
	// Aligned and Misaligned count, by scope, where one node was promised.
	Aligned, Misaligned meter.CountOf
}

// Deps are an Aligner's collaborators.
type Deps struct {
	// Providers are asked in this order.
	Providers []Provider
	Meters    Meters
	Clock     clock.PassiveClock
	Log       *slog.Logger
}

// Aligner gives pods their resources. It is safe for concurrent use.
type Aligner struct {
	cfg  Config
	deps Deps
	mu   sync.Mutex // one pod after the other
}

// New validates and starts nothing.
func New(cfg Config, deps Deps) (*Aligner, error) {
	if deps.Clock == nil || deps.Log == nil {
		return nil, errors.New("align resources: clock and log are needed")
	}
	switch cfg.Policy {
	case None:
		return &Aligner{cfg: cfg, deps: deps}, nil
	case BestEffort, Restricted, SingleNode:
	default:
		return nil, fmt.Errorf("topologyManagerPolicy: there is no policy %q", cfg.Policy)
	}
	if cfg.Scope != ByContainer && cfg.Scope != ByPod {
		return nil, fmt.Errorf("topologyManagerScope: there is no scope %q", cfg.Scope)
	}
	if n := cfg.Layout.All.Count(); n == 0 || n > cfg.Options.MaxNodes {
		return nil, fmt.Errorf("topologyManagerPolicy %s: the machine has %d NUMA nodes, which must be 1 to %d (option max-allowable-numa-nodes)",
			cfg.Policy, n, cfg.Options.MaxNodes)
	}
	if !cfg.Options.PreferClosest {
		cfg.Layout.Distances = nil
	}
	return &Aligner{cfg: cfg, deps: deps}, nil
}

// Policy and Scope are what the agent was told.
func (a *Aligner) Policy() string { return a.cfg.Policy }
func (a *Aligner) Scope() string  { return a.cfg.Scope }

// Admit gives the pod's containers their resources. What was given before a
// rejection stays given until Release.
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
	asWhole := a.cfg.PodLevel && resourcehelper.IsPodLevelResourcesSet(p)
	switch {
	case a.cfg.Policy == None:
		return a.eachContainer(p, func(c *v1.Container) error { return a.allocate(ctx, p, c, Hint{}) })
	case a.cfg.Scope == ByPod:
		return a.admitPod(ctx, p, asWhole)
	}
	return a.eachContainer(p, func(c *v1.Container) error { return a.admitContainer(ctx, p, c, asWhole) })
}

// admitContainer finds a place for one container and has its resources given out there.
func (a *Aligner) admitContainer(ctx context.Context, p *v1.Pod, c *v1.Container, asWhole bool) error {
	var all []Hints
	for _, provider := range a.deps.Providers {
		all = append(all, provider.Hints(p, c))
	}
	where, ok := decide(a.cfg.Policy, a.cfg.Layout, all)
	a.deps.Log.Debug("place for a container", "pod", p.UID, "container", c.Name, "nodes", where.Nodes, "preferred", where.Preferred)
	if !ok {
		a.misaligned()
		if asWhole {
			return refuse("Pod Scope pod with pod-level resources failed admission with a container-level topology manager")
		}
		return refuse("Resources cannot be allocated with Topology locality")
	}
	if err := a.allocate(ctx, p, c, where); err != nil {
		return err
	}
	a.aligned()
	return nil
}

// admitPod finds one place for all of the pod's containers.
func (a *Aligner) admitPod(ctx context.Context, p *v1.Pod, asWhole bool) error {
	var all []Hints
	for _, provider := range a.deps.Providers {
		all = append(all, provider.PodHints(p))
	}
	where, ok := decide(a.cfg.Policy, a.cfg.Layout, all)
	a.deps.Log.Debug("place for a pod", "pod", p.UID, "nodes", where.Nodes, "preferred", where.Preferred)
	if !ok {
		a.misaligned()
		if asWhole {
			return refuse("Pod Scope pod with pod-level resources failed admission under pod-scope topology manager")
		}
		return refuse("Resources cannot be allocated with Topology locality")
	}
	err := a.eachContainer(p, func(c *v1.Container) error {
		if asWhole {
			return nil
		}
		return a.allocate(ctx, p, c, where)
	})
	if asWhole {
		err = a.allocatePod(ctx, p, where)
	}
	if err != nil {
		return err
	}
	a.aligned()
	return nil
}

func (a *Aligner) allocate(ctx context.Context, p *v1.Pod, c *v1.Container, where Hint) error {
	for _, provider := range a.deps.Providers {
		if err := provider.Allocate(ctx, p, c, where); err != nil {
			return err
		}
	}
	return nil
}

// allocatePod gives to the pod as a whole what can be given so, and the rest by container.
func (a *Aligner) allocatePod(ctx context.Context, p *v1.Pod, where Hint) error {
	for _, provider := range a.deps.Providers {
		var err error
		if whole, ok := provider.(PodProvider); ok {
			err = whole.AllocatePod(ctx, p, where)
		} else {
			err = a.eachContainer(p, func(c *v1.Container) error { return provider.Allocate(ctx, p, c, where) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eachContainer visits init containers first, as they will run.
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

// Release takes back all that the pod was given.
func (a *Aligner) Release(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, provider := range a.deps.Providers {
		provider.Release(uid)
	}
}

func (a *Aligner) aligned() {
	if a.cfg.Policy == SingleNode {
		a.deps.Meters.Aligned.Inc(a.cfg.Scope)
	}
}

func (a *Aligner) misaligned() {
	if a.cfg.Policy == SingleNode {
		a.deps.Meters.Misaligned.Inc(a.cfg.Scope)
	}
}

func refuse(message string) error { return pod.Reject("TopologyAffinityError", "%s", message) }
