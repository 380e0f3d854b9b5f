package eviction

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

const (
	// firstRetry is the delay after the first attempt that found no pod to evict.
	firstRetry = time.Second
	// eventInterval is the time between two node events for the same resource.
	eventInterval = 10 * time.Second
)

// outcome is the result of reclaim.
type outcome int

const (
	noCandidate outcome = iota // no pod can be evicted
	inProgress                 // background work will wake the loop
	podEvicted
)

// reclaim acts on the thresholds that are due. Memory comes first, and is acted on at once.
func (e *Evictor) reclaim(ctx context.Context, levels Levels, due []int) outcome {
	next := 0
	if t := e.thresholds[due[0]]; ofMemory(t.Signal) {
		e.recordThresholdMet(v1.ResourceMemory)
		used, err := readUsage(ctx, e.deps.Stats.UsageSummary)
		e.logUsageError(err)
		if e.evictFor(ctx, levels, due, t, used) {
			return podEvicted
		}
		for next < len(due) && ofMemory(e.thresholds[due[next]].Signal) {
			next++
		}
	}
	if next == len(due) {
		return noCandidate
	}
	return e.reclaimInBackground(ctx, levels, due, e.thresholds[due[next]])
}

func ofMemory(s Signal) bool { return signalInfos[s].resource == v1.ResourceMemory }

// reclaimState is the state of garbage collection and measurement for a threshold.
type reclaimState struct {
	running bool
	result  *reclaimResult // of the last one, until it is used
}

// reclaimResult is the usage of pods after garbage collection for a signal.
type reclaimResult struct {
	signal Signal
	used   podUsage
	at     time.Time
}

// reclaimInBackground starts garbage collection and measurement for a threshold, and evicts
// the pod that ranks first once the result is available.
func (e *Evictor) reclaimInBackground(ctx context.Context, levels Levels, due []int, t Threshold) outcome {
	if e.reclaimed.running {
		return inProgress
	}
	if f := e.reclaimed.result; f != nil && f.signal == t.Signal && e.deps.Clock.Since(f.at) < period {
		e.reclaimed.result = nil
		if e.evictFor(ctx, levels, due, t, f.used) {
			return podEvicted
		}
		return noCandidate
	}
	e.recordThresholdMet(signalInfos[t.Signal].resource)
	e.startReclaim(ctx, t.Signal)
	return inProgress
}

// startReclaim collects garbage, and measures pods if that is not enough.
func (e *Evictor) startReclaim(ctx context.Context, s Signal) {
	e.reclaimed.running = true
	layout, thresholds := e.currentLayout(), e.thresholds
	e.runInBackground(ctx, func() func() {
		var used podUsage
		enough := false
		err := e.deps.Panics.Call("eviction", func() (err error) {
			if enough = e.collectGarbage(ctx, layout, thresholds, s); !enough {
				used, err = readUsage(ctx, e.deps.Stats.Summary)
			}
			return err
		})
		return func() {
			e.reclaimed.running = false
			if enough {
				e.log.Info("eviction: garbage collection reclaimed enough", "resource", signalInfos[s].resource)
				return
			}
			e.logUsageError(err)
			e.reclaimed.result = &reclaimResult{s, used, e.deps.Clock.Now()}
		}
	})
}

// evictFor evicts the pod that ranks first for a threshold, and reports whether there was one.
func (e *Evictor) evictFor(ctx context.Context, levels Levels, due []int, t Threshold, used podUsage) bool {
	for _, p := range rank(e.deps.Pods.Active(), used, t.Signal, e.currentLayout()) {
		if !e.evictable(p) || e.alreadyKilled(p, t.Signal) {
			continue
		}
		for _, i := range due {
			signal := e.thresholds[i].Signal
			e.deps.Meters.StatsAge.Took(string(signal), e.deps.Clock.Since(levels[signal].At))
		}
		why := explain(p, used[p.UID], t, levels[t.Signal])
		if e.evict(ctx, victim{pod: p, grace: e.grace(p, t), explanation: why, condition: why.disruption(),
			label: string(t.Signal), reclaims: []Signal{e.currentLayout().backing(t.Signal)}}) {
			return true
		}
	}
	return false
}

// recordThresholdMet records a node event, at most once per eventInterval and resource.
func (e *Evictor) recordThresholdMet(starved v1.ResourceName) {
	now := e.deps.Clock.Now()
	if last, ok := e.lastEvent[starved]; ok && now.Sub(last) < eventInterval {
		return
	}
	e.lastEvent[starved] = now
	e.deps.Events.Eventf(e.deps.Node, v1.EventTypeWarning, "EvictionThresholdMet", "Attempting to reclaim %s", starved)
}

func (e *Evictor) currentLayout() Layout {
	if e.layout == nil {
		return Layout{}
	}
	return *e.layout
}

// collectGarbage removes dead containers and unused images, and reports whether that was
// enough. It runs in the background.
func (e *Evictor) collectGarbage(ctx context.Context, l Layout, thresholds []Threshold, s Signal) bool {
	containers, images := l.reclaimable(s)
	removed := false
	for _, remove := range []struct {
		what    string
		enabled bool
		run     func(context.Context) error
	}{{"containers", containers, e.deps.RemoveContainers}, {"images", images, e.deps.RemoveImages}} {
		if !remove.enabled || remove.run == nil {
			continue
		}
		removed = true
		if err := remove.run(ctx); err != nil {
			e.log.Warn("eviction: garbage collection failed", "what", remove.what, "err", err)
		}
	}
	if !removed {
		return false
	}
	signals, err := e.deps.Stats.Signals(ctx)
	return err == nil && aboveThresholds(thresholds, levelsFrom(signals))
}

// readUsage returns the pods' usage from one of the summaries.
func readUsage(ctx context.Context, summarize func(context.Context) (*statsapi.Summary, error)) (podUsage, error) {
	summary, err := summarize(ctx)
	if err != nil {
		return nil, err
	}
	return indexByUID(summary.Pods), nil
}

func (e *Evictor) logUsageError(err error) {
	if err != nil {
		e.log.Error("eviction: read pod usage failed, ranking pods without it", "err", err)
	}
}

// grace is the pod's grace period in seconds.
func (e *Evictor) grace(p *v1.Pod, t Threshold) int64 {
	if t.hard() {
		return hardGrace
	}
	grace := e.cfg.MaxPodGracePeriodSeconds
	if own := p.Spec.TerminationGracePeriodSeconds; own != nil {
		grace = min(grace, *own)
	}
	return max(grace, hardGrace)
}
