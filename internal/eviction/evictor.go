package eviction

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/clock"

	"swiftlet/internal/backoff"
	"swiftlet/internal/cgroup"
	"swiftlet/internal/meter"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/stats"
)

// Config is fixed for the life of the agent.
type Config struct {
	Thresholds []Threshold
	// Transition is how long a condition of the node is kept after its last sign.
	Transition time.Duration
	// MaxGrace is what a pod that goes for a soft threshold gets at most, in seconds.
	MaxGrace int64
	// Limits has pods evicted that exceed their own limits on local storage.
	Limits bool
}

// Stats measures; stats.Stats does.
type Stats interface {
	// Signals is asked often and must be cheap.
	Signals(context.Context) (stats.Signals, error)
	// UsageSummary tells CPU and memory of all pods, Summary disks and processes as well.
	UsageSummary(context.Context) (*statsapi.Summary, error)
	Summary(context.Context) (*statsapi.Summary, error)
	// Storage tells what these pods have written to the disk, found no longer ago than fresh.
	Storage(ctx context.Context, pods []types.UID, fresh time.Duration) ([]statsapi.PodStats, error)
}

// Pods are those that run here; worker.Pool is them.
type Pods interface {
	Active() []*v1.Pod
	// Evict ends a pod within the given seconds, with that failure as its last word.
	Evict(uid types.UID, failure pod.Failure, grace *int64) (found bool)
	// Finished is closed when the pod has given back what it held.
	Finished(uid types.UID) (finished <-chan struct{}, found bool)
}

// Events records what happened.
type Events interface {
	pod.Events
	AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any)
}

// Deps are what the Evictor works with.
type Deps struct {
	Stats  Stats
	Pods   Pods
	Events Events
	// Node is the object of events about the node.
	Node *v1.ObjectReference
	// Alarm rings when the kernel sees memory run short; nil leaves it to looking.
	Alarm cgroup.Alarm
	// RemoveContainers removes what is left of containers that will not run again, and
	// RemoveImages the images that no container uses. Each may be nil.
	RemoveContainers, RemoveImages func(context.Context) error
	// Changed is called when the conditions of the node did.
	Changed func()
	Meters  Meters
	Clock   clock.Clock
	Log     *slog.Logger
}

// Meters measure evictions; each may be nil.
type Meters struct {
	// Evicted counts them by signal.
	Evicted meter.CountOf
	// StatsAge takes how old the figures were that a pod was evicted for, by signal.
	StatsAge meter.TimingOf
}

// Evictor is the loop that watches the node.
type Evictor struct {
	cfg  Config
	deps Deps
	log  *slog.Logger
	rung notify.Signal
	// asides are goroutines that work beside the loop, and thens what is to be done in it when
	// they have.
	asides sync.WaitGroup
	thens  chan func()

	// These belong to the goroutine of Run.
	layout     *Layout // nil until the runtime has told
	thresholds []Threshold
	state      verdict
	limitsDue  time.Time
	limiting   bool                          // pods with limits are being measured
	searching  bool                          // somebody looks for what can be removed, and who uses the rest
	found      *finding                      // what came of it
	told       map[v1.ResourceName]time.Time // when the want of it was last told
	deaf       time.Duration                 // to the alarm after a look
	near       bool                          // memory is so near to a threshold that each ring counts
	trouble    string                        // as last logged
	retries    backoff.Backoff               // while nothing can be done
	retryAt    time.Time                     // after the last attempt in vain; zero without one
	settling   map[Signal]settle             // disks on which pods wrote that are gone
	leaving    map[types.UID]*leaver         // pods that were evicted and are not gone

	mu         sync.Mutex
	conditions []v1.NodeConditionType
}

// New validates and starts nothing.
func New(cfg Config, deps Deps) (*Evictor, error) {
	if deps.Stats == nil || deps.Pods == nil || deps.Events == nil || deps.Node == nil || deps.Clock == nil || deps.Log == nil {
		return nil, errors.New("new evictor: stats, pods, events, node, clock and log are needed")
	}
	for _, t := range cfg.Thresholds {
		if _, known := traits[t.Signal]; !known {
			return nil, errors.New("new evictor: there is no signal " + string(t.Signal))
		}
	}
	return &Evictor{
		cfg: cfg, deps: deps, log: deps.Log,
		rung:       notify.New(),
		thens:      make(chan func()),
		thresholds: cfg.Thresholds,
		retries:    backoff.Backoff{First: retry, Longest: period},
		told:       map[v1.ResourceName]time.Time{},
		settling:   map[Signal]settle{},
		leaving:    map[types.UID]*leaver{},
	}, nil
}

// Conditions are the kinds of pressure that the node is under. It may be called from
// anywhere, at any time.
func (e *Evictor) Conditions() []v1.NodeConditionType {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.conditions)
}

// judged takes over a new verdict.
func (e *Evictor) judged(next verdict) {
	changed := !slices.Equal(e.state.conditions, next.conditions)
	e.state = next
	if !changed {
		return
	}
	e.log.Info("pressure on the node", "conditions", next.conditions)
	e.mu.Lock()
	e.conditions = next.conditions
	e.mu.Unlock()
	if e.deps.Changed != nil {
		e.deps.Changed()
	}
}
