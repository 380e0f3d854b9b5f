package eviction

import (
	"context"
	"fmt"
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
	"swiftlet/internal/contain"
	"swiftlet/internal/meter"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
	"swiftlet/internal/stats"
)

// Config is fixed for the life of the agent.
type Config struct {
	Thresholds []Threshold
	// PressureTransitionPeriod is how long a node condition outlasts the last check that met a threshold
	// (evictionPressureTransitionPeriod).
	PressureTransitionPeriod time.Duration
	// MaxPodGracePeriodSeconds bounds the grace period of a pod that is evicted for a soft
	// threshold.
	MaxPodGracePeriodSeconds int64
	// EnforceStorageLimits turns on the eviction of pods that exceed their own limits on local storage.
	EnforceStorageLimits bool
}

// Stats reads usage. stats.Stats implements it.
type Stats interface {
	// Signals is called often and must be cheap.
	Signals(context.Context) (stats.Signals, error)
	// UsageSummary returns the CPU and memory usage of all pods, Summary also that of disks
	// and processes.
	UsageSummary(context.Context) (*statsapi.Summary, error)
	Summary(context.Context) (*statsapi.Summary, error)
	// Storage returns the disk usage of these pods, measured no longer ago than fresh.
	Storage(ctx context.Context, pods []types.UID, fresh time.Duration) ([]statsapi.PodStats, error)
}

// Pods are the pods of the node. worker.Pool implements it.
type Pods interface {
	Active() []*v1.Pod
	// Evict terminates a pod with that grace period in seconds; failure becomes its status.
	Evict(uid types.UID, failure pod.Failure, grace *int64) (found bool)
	// Finished returns a channel that is closed when the pod has released its resources.
	Finished(uid types.UID) (finished <-chan struct{}, found bool)
}

// Events records events.
type Events interface {
	pod.Events
	AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any)
}

// Deps are the Evictor's dependencies.
type Deps struct {
	Stats  Stats
	Pods   Pods
	Events Events
	// Node is the object of node events.
	Node *v1.ObjectReference
	// MemoryNotifier notifies when memory becomes scarce; without it the loop polls.
	MemoryNotifier cgroup.MemoryNotifier
	// RemoveContainers removes dead containers, RemoveImages the images that no container
	// uses. Each may be nil.
	RemoveContainers, RemoveImages func(context.Context) error
	// ConditionsChanged is called when the result of Conditions has changed. It may be nil.
	ConditionsChanged func()
	// Panics reports the panics of checks.
	Panics contain.Reporter
	Meters Meters
	Clock  clock.Clock
	Log    *slog.Logger
}

// Meters measure evictions; each may be nil.
type Meters struct {
	// Evicted counts evictions by signal.
	Evicted meter.CountOf
	// StatsAge takes the age of the stats at an eviction, by signal.
	StatsAge meter.TimingOf
}

// Evictor is the loop that watches the node.
type Evictor struct {
	cfg  Config
	deps Deps
	log  *slog.Logger
	// memoryNotified is notified by the MemoryNotifier.
	memoryNotified notify.Signal
	// background counts the goroutines of runInBackground; the loop calls what they send to
	// completions.
	background  sync.WaitGroup
	completions chan func()

	// Only the goroutine of Run uses these.
	layout        *Layout // nil until the runtime has reported its file systems
	thresholds    []Threshold
	state         evaluation
	limitCheck    limitCheck
	reclaimed     reclaimState
	lastEvent     map[v1.ResourceName]time.Time // when recordThresholdMet last recorded an event
	quiet         backoff.Backoff               // how long to ignore memory notifications after a check
	nearThreshold bool                          // memory is so near to a threshold that no notification is ignored
	lastError     string                        // of reading the signals, as logged
	retry         retryState
	settling      map[Signal]settlingDisk
	terminating   map[types.UID]*terminatingPod

	mu         sync.Mutex
	conditions []v1.NodeConditionType
}

// New validates its arguments and starts nothing.
func New(cfg Config, deps Deps) (*Evictor, error) {
	if err := require.Set("new evictor", map[string]any{
		"Stats": deps.Stats, "Pods": deps.Pods, "Events": deps.Events, "Node": deps.Node, "Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	for _, t := range cfg.Thresholds {
		if _, known := signalInfos[t.Signal]; !known {
			return nil, fmt.Errorf("new evictor: unknown signal %q", t.Signal)
		}
	}
	return &Evictor{
		cfg: cfg, deps: deps, log: deps.Log,
		memoryNotified: notify.New(),
		quiet:          backoff.Backoff{First: minWait, Longest: maxQuiet},
		completions:    make(chan func()),
		thresholds:     cfg.Thresholds,
		retry:          retryState{delay: backoff.Backoff{First: firstRetry, Longest: period}},
		lastEvent:      map[v1.ResourceName]time.Time{},
		settling:       map[Signal]settlingDisk{},
		terminating:    map[types.UID]*terminatingPod{},
	}, nil
}

// Conditions returns the pressure conditions of the node. It is safe for concurrent use.
func (e *Evictor) Conditions() []v1.NodeConditionType {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.conditions)
}

// applyEvaluation stores an evaluation and reports a change of conditions.
func (e *Evictor) applyEvaluation(next evaluation) {
	changed := !slices.Equal(e.state.conditions, next.conditions)
	e.state = next
	if !changed {
		return
	}
	e.log.Info("node pressure changed", "conditions", next.conditions)
	e.mu.Lock()
	e.conditions = next.conditions
	e.mu.Unlock()
	if e.deps.ConditionsChanged != nil {
		e.deps.ConditionsChanged()
	}
}
