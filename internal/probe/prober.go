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

	"swiftlet/internal/contain"
	"swiftlet/internal/instant"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/queue"
	"swiftlet/internal/require"
	"swiftlet/internal/why"
)

// Checker runs a probe once.
type Checker interface {
	Check(ctx context.Context, t Target) Outcome
}

// Target is a probe and the container to run it against.
type Target struct {
	Pod         *v1.Pod
	Container   *v1.Container
	ContainerID string
	PodIP       string
	Probe       *v1.Probe
}

// Outcome is the result of one run.
type Outcome struct {
	Result  pod.Result // Unsure: the check itself failed
	Output  string
	Warning bool // it passed, but the user should see the output
	// Class is why it did not pass.
	Class why.Class
}

// Config is the configuration of a Prober.
type Config struct {
	// File keeps results across restarts of the agent, for containers that no API server shows; "" for
	// none.
	File string
}

// Deps are the Prober's dependencies.
type Deps struct {
	Checker Checker
	Events  pod.Events
	// Why records failures; may be nil.
	Why    *why.Tracker
	Panics contain.Reporter
	Clock  clock.WithDelayedExecution
	Log    *slog.Logger
	// Random returns a number in [0, 1). It spreads the first runs after a restart of the kubelet.
	Random func() float64
	// Cores is the number of CPUs of the node. It bounds concurrent exec probes.
	Cores int
}

// Prober holds the probes of all containers on the node.
type Prober struct {
	deps        Deps
	changed     *queue.Unique[types.UID]
	heapChanged notify.Signal // the head of the heap may have changed
	metrics     metrics
	slots       execSlots
	created     time.Time // older containers were started by a previous kubelet process
	file        string
	unsaved     notify.Signal // the file is older than the results
	saveNow     notify.Signal // a startup probe is among them

	mu     sync.Mutex
	probes map[key]*state
	due    dueHeap
	saved  map[string]savedResults // what the file had when the agent started
}

// key is one probe of one container instance.
type key struct {
	container string // id
	kind      kind
}

// New validates its arguments, reads the file and starts nothing.
func New(cfg Config, deps Deps) (*Prober, error) {
	if err := require.Set("new prober", map[string]any{
		"Checker": deps.Checker, "Events": deps.Events, "Clock": deps.Clock, "Log": deps.Log, "Random": deps.Random,
	}); err != nil {
		return nil, err
	}
	if deps.Cores < 1 {
		return nil, errors.New("new prober: Cores must be positive")
	}
	return &Prober{
		deps:        deps,
		changed:     queue.NewUnique[types.UID](),
		heapChanged: notify.New(),
		metrics:     newMetrics(),
		slots:       newExecSlots(deps.Cores, deps.Clock),
		created:     deps.Clock.Now(),
		file:        cfg.File,
		unsaved:     notify.New(),
		saveNow:     notify.New(),
		probes:      map[key]*state{},
		saved:       readSaved(cfg.File, deps.Log),
	}, nil
}

// Changes yields the pods with a probe whose result has changed.
func (p *Prober) Changes() <-chan types.UID { return p.changed.C() }

// Health returns the probe results of a container instance.
func (p *Prober) Health(containerID string) pod.Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := func(k kind) pod.Result {
		if s := p.probes[key{containerID, k}]; s != nil {
			return s.result
		}
		return pod.ProbeUnknown
	}
	return pod.Health{Startup: at(startup), Liveness: at(liveness), Readiness: at(readiness)}
}

// Watch reconciles the probes of a pod with its running containers. It is idempotent. published
// is the pod's status in the API server, or that of its mirror, which may become known after the first
// call and is nil until then: a container that is ready there stays ready until a probe fails, so that a
// restart of the kubelet does not change readiness.
func (p *Prober) Watch(of *v1.Pod, observed *pod.Observed, podIP string, published *v1.PodStatus, stopping bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	desired := map[key]bool{}
	for c, containerKind := range pod.Containers(of) {
		running := observed.Latest(c.Name)
		if running == nil || running.State != pod.Running || !hasProbes(c, containerKind) {
			continue
		}
		for k, spec := range probesOf(c) {
			if spec == nil || (stopping && k == liveness) {
				continue
			}
			id := key{running.ID, k}
			target := Target{Pod: of, Container: c, ContainerID: running.ID, PodIP: podIP, Probe: spec}
			if s := p.probes[id]; s != nil {
				s.target = target
				p.inheritLate(s, published)
			} else {
				p.add(id, target, running.StartedAt, published)
			}
			// A startup probe runs no more, but what has started stays so.
			desired[id] = !stopping || k == readiness || p.passed(id)
		}
	}
	for id, s := range p.probes {
		if s.target.Pod.UID == of.UID && !desired[id] {
			p.remove(id, s)
		}
	}
}

// hasProbes is false for ephemeral containers and for init containers that are not sidecars.
func hasProbes(c *v1.Container, k pod.ContainerKind) bool {
	return k == pod.Main || (k == pod.Init && pod.IsSidecar(c))
}

// Forget removes all probes and metrics of a pod.
func (p *Prober) Forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, s := range p.probes {
		if s.target.Pod.UID == uid {
			p.remove(id, s)
		}
	}
	p.metrics.forget(uid)
}

// add adds a probe. The first run of a container that has just started is due as soon as the
// initial delay allows. For a container of a previous kubelet process it is due at a random time
// within the period, because all these probes are added at the same time. The caller holds mu.
func (p *Prober) add(id key, t Target, started time.Time, published *v1.PodStatus) {
	s := &state{key: id, target: t, index: -1, result: initialResult(id.kind), recorded: true}
	p.probes[id] = s
	saved := p.saved[id.container]
	shown := s.inherit(published)
	if !shown || s.kind == startup { // a container that has started stays started
		s.restore(saved)
	}
	if shown && s.kind != liveness && (s.result == pod.Passed) != saved.passed(s.kind) {
		p.markUnsaved(s.kind)
	}
	if s.final() {
		return // it had started before this process did
	}
	now := p.deps.Clock.Now()
	started = instant.Past(started, now)
	s.earliest = started.Add(time.Duration(t.Probe.InitialDelaySeconds) * time.Second)
	if started.Before(p.created) {
		s.scheduleSpread(now, p.deps.Random())
		s.hold(published)
	} else {
		s.scheduleFirst(now)
	}
	heap.Push(&p.due, s)
	p.heapChanged.Notify()
}

// remove removes a probe; the outcome of a run in progress is dropped. The caller holds mu.
func (p *Prober) remove(id key, s *state) {
	delete(p.probes, id)
	if s.index >= 0 {
		heap.Remove(&p.due, s.index)
	}
}
