package page

import (
	"context"
	"log/slog"
	"sync"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// readingTimeout limits a reading of the usage of all pods, which may ask the container runtime.
const readingTimeout = 30 * time.Second

// readings reads the usage of pods aside, one reading at a time.
type readings struct {
	ctx   context.Context
	usage Usage
	// contained calls a function that may panic.
	contained func(func())
	log       *slog.Logger
	done      chan []statsapi.PodStats
	busy      chan struct{}
	group     sync.WaitGroup
}

func newReadings(ctx context.Context, usage Usage, contained func(func()), log *slog.Logger) *readings {
	return &readings{ctx: ctx, usage: usage, contained: contained, log: log, done: make(chan []statsapi.PodStats, 1), busy: make(chan struct{}, 1)}
}

// request begins a reading, unless one is in progress.
func (r *readings) request() {
	select {
	case r.busy <- struct{}{}:
	default:
		return
	}
	r.group.Go(func() {
		defer func() { <-r.busy }()
		r.contained(r.read)
	})
}

func (r *readings) read() {
	ctx, cancel := context.WithTimeout(r.ctx, readingTimeout)
	defer cancel()
	summary, err := r.usage.UsageSummary(ctx)
	if err != nil && r.ctx.Err() != nil {
		return // no page is open any more
	}
	if err != nil {
		r.log.Warn("read usage for page: failed", "err", err)
		return
	}
	select {
	case r.done <- summary.Pods:
	default: // the last one was not taken yet
	}
}

// wait returns when no reading is in progress.
func (r *readings) wait() { r.group.Wait() }
