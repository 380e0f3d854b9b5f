package probe

import (
	"container/heap"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/queue"
)

// Checker asks one container once.
type Checker interface {
	Check(ctx context.Context, t Target) Answer
}

// Target is whom and how to ask.
type Target struct {
	Pod         *v1.Pod
	Container   *v1.Container
	ContainerID string
	PodIP       string
	Probe       *v1.Probe
}

// Answer is what one asking found.
type Answer struct {
	Result pod.Result // Unsure: the asking itself failed
	Output string
	Doubt  bool // it passed, but the output says what the user should know
}

// Deps is what a prober works with.
type Deps struct {
	Checker Checker
	Events  pod.Events
	Clock   clock.WithDelayedExecution
	Log     *slog.Logger
	// Random returns a number in [0, 1). It spreads the first runs after a restart.
	Random func() float64
	// Cores is how many CPUs the commands of probes share.
	Cores int
}

// Prober holds the probes of all containers on the node.
type Prober struct {
	deps    Deps
	changed *queue.Unique[types.UID]
	poke    notify.Signal // the heap's head may have changed
	metrics metrics
	slots   execSlots
	created time.Time // containers that are older were started by a former agent

	mu     sync.Mutex
	probes map[key]*state
	due    dueHeap
}

// key is one probe of one container instance.
type key struct {
	container string // id
	kind      kind
}

// New validates and starts nothing.
func New(deps Deps) (*Prober, error) {
	if deps.Checker == nil || deps.Events == nil || deps.Clock == nil || deps.Log == nil || deps.Random == nil || deps.Cores < 1 {
		return nil, errors.New("probe: checker, events, clock, log, random and cores are needed")
	}
	return &Prober{
		deps:    deps,
		changed: queue.NewUnique[types.UID](),
		poke:    notify.New(),
		metrics: newMetrics(),
		slots:   newExecSlots(deps.Cores, deps.Clock),
		created: deps.Clock.Now(),
		probes:  map[key]*state{},
	}, nil
}

// Changes yields pods of which a probe has changed its mind.
func (p *Prober) Changes() <-chan types.UID { return p.changed.C() }

// Health is what is known of a container instance.
func (p *Prober) Health(containerID string) pod.Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := func(k kind) pod.Result {
		if s := p.probes[key{containerID, k}]; s != nil {
			return s.result
		}
		return pod.Unsure
	}
	return pod.Health{Startup: at(startup), Liveness: at(liveness), Readiness: at(readiness)}
}

// Watch makes the probes of a pod those of its running containers. It is told the whole
// state each time and may be called as often as one likes. Shown is the status the API
// server shows of the pod: a container that was ready stays so until a probe says otherwise,
// so that a restart of the agent goes unnoticed.
func (p *Prober) Watch(of *v1.Pod, observed *pod.Observed, podIP string, shown *v1.PodStatus, stopping bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := map[key]bool{}
	for c, containerKind := range pod.Containers(of) {
		running := observed.Latest(c.Name)
		if running == nil || running.State != pod.Running || !probed(c, containerKind) {
			continue
		}
		for k, spec := range specs(c) {
			if spec == nil || (stopping && k != readiness) {
				continue
			}
			id := key{running.ID, k}
			wanted[id] = true
			target := Target{Pod: of, Container: c, ContainerID: running.ID, PodIP: podIP, Probe: spec}
			if s := p.probes[id]; s != nil {
				s.target = target
				continue
			}
			p.add(id, target, running.StartedAt, shown)
		}
	}
	for id, s := range p.probes {
		if s.target.Pod.UID == of.UID && !wanted[id] {
			p.drop(id, s)
		}
	}
}

// probed: ordinary init containers and ephemeral ones are not.
func probed(c *v1.Container, k pod.ContainerKind) bool {
	return k == pod.Main || (k == pod.Init && pod.IsSidecar(c))
}

// Forget ends all probes of a pod.
func (p *Prober) Forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, s := range p.probes {
		if s.target.Pod.UID == uid {
			p.drop(id, s)
		}
	}
	p.metrics.forget(uid)
}

// add begins a probe. A container that has just started is probed as soon as the initial
// delay allows. One that a former agent started is probed at a random moment of the period:
// after a restart of the agent all probes are added at once, and should not run at once.
// Called under the lock.
func (p *Prober) add(id key, t Target, started time.Time, shown *v1.PodStatus) {
	s := &state{key: id, target: t, index: -1, result: initial(id.kind, t, shown)}
	p.probes[id] = s
	if s.final() {
		return // it had started before this agent did
	}
	s.earliest = started.Add(time.Duration(t.Probe.InitialDelaySeconds) * time.Second)
	if now := p.deps.Clock.Now(); started.Before(p.created) {
		s.spread(now, p.deps.Random())
	} else {
		s.due(now)
	}
	heap.Push(&p.due, s)
	p.poke.Notify()
}

// drop ends a probe; an asking that is under way is not listened to. Called under the lock.
func (p *Prober) drop(id key, s *state) {
	delete(p.probes, id)
	if s.index >= 0 {
		heap.Remove(&p.due, s.index)
	}
}
