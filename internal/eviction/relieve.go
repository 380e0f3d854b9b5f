package eviction

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

const (
	// retry is when it is tried again where nothing helped.
	retry = time.Second
	// repeat is how often the node's events tell of a want that goes on.
	repeat = 10 * time.Second
)

// outcome is what came of doing something about a want.
type outcome int

const (
	nothing  outcome = iota // can be done
	underWay                // it takes its time, and the loop is told
	helped                  // a pod goes
)

// relieve does something about the thresholds that are due. Memory comes first, and is done
// about at once.
func (e *Evictor) relieve(ctx context.Context, levels Levels, due []int) outcome {
	next := 0
	if t := e.thresholds[due[0]]; ofMemory(t.Signal) {
		e.tell(v1.ResourceMemory)
		used, err := usedBy(ctx, e.deps.Stats.UsageSummary)
		e.noteUnknown(err)
		if e.shed(ctx, levels, due, t, used) {
			return helped
		}
		for next < len(due) && ofMemory(e.thresholds[due[next]].Signal) {
			next++
		}
	}
	if next == len(due) {
		return nothing
	}
	return e.relieveSlowly(ctx, levels, due, e.thresholds[due[next]])
}

func ofMemory(s Signal) bool { return traits[s].resource == v1.ResourceMemory }

// finding is what came of a search.
type finding struct {
	signal Signal
	used   usages
	at     time.Time
}

// relieveSlowly has somebody remove what nobody uses and find out who uses the rest, and ends
// the pod that is most to blame when that is known.
func (e *Evictor) relieveSlowly(ctx context.Context, levels Levels, due []int, t Threshold) outcome {
	if e.searching {
		return underWay
	}
	if f := e.found; f != nil && f.signal == t.Signal && e.deps.Clock.Since(f.at) < period {
		e.found = nil
		if e.shed(ctx, levels, due, t, f.used) {
			return helped
		}
		return nothing
	}
	e.tell(traits[t.Signal].resource)
	e.search(ctx, t.Signal)
	return underWay
}

// search removes what nobody uses, and measures pods where that is not enough.
func (e *Evictor) search(ctx context.Context, s Signal) {
	e.searching = true
	layout, thresholds := e.layoutOf(), e.thresholds
	e.aside(ctx, func() func() {
		var used usages
		var err error
		enough := e.clean(ctx, layout, thresholds, s)
		if !enough {
			used, err = usedBy(ctx, e.deps.Stats.Summary)
		}
		return func() {
			e.searching = false
			if enough {
				e.log.Info("enough could be removed that nobody uses", "resource", traits[s].resource)
				return
			}
			e.noteUnknown(err)
			e.found = &finding{s, used, e.deps.Clock.Now()}
		}
	})
}

// shed ends the pod that is most to blame for a threshold, and reports whether there was one.
func (e *Evictor) shed(ctx context.Context, levels Levels, due []int, t Threshold, used usages) bool {
	for _, p := range rank(e.deps.Pods.Active(), used, t.Signal, e.layoutOf()) {
		if !e.mayGo(p) || e.spent(p, t.Signal) {
			continue
		}
		for _, i := range due {
			signal := e.thresholds[i].Signal
			e.deps.Meters.StatsAge.Took(string(signal), e.deps.Clock.Since(levels[signal].At))
		}
		why := blameFor(p, used[p.UID], t, levels[t.Signal])
		if e.evict(ctx, victim{pod: p, grace: e.grace(p, t), blame: why, condition: why.disruption(),
			counted: string(t.Signal), frees: []Signal{e.layoutOf().place(t.Signal)}}) {
			return true
		}
	}
	return false
}

// tell records that something is done about a want, now and then.
func (e *Evictor) tell(starved v1.ResourceName) {
	now := e.deps.Clock.Now()
	if last, ok := e.told[starved]; ok && now.Sub(last) < repeat {
		return
	}
	e.told[starved] = now
	e.deps.Events.Eventf(e.deps.Node, v1.EventTypeWarning, "EvictionThresholdMet", "Attempting to reclaim %s", starved)
}

func (e *Evictor) layoutOf() Layout {
	if e.layout == nil {
		return Layout{}
	}
	return *e.layout
}

// clean removes what nobody uses, and reports whether that was enough. It is called aside.
func (e *Evictor) clean(ctx context.Context, l Layout, thresholds []Threshold, s Signal) bool {
	containers, images := l.spare(s)
	cleaned := false
	for _, remove := range []struct {
		may bool
		do  func(context.Context) error
	}{{containers, e.deps.RemoveContainers}, {images, e.deps.RemoveImages}} {
		if !remove.may || remove.do == nil {
			continue
		}
		cleaned = true
		if err := remove.do(ctx); err != nil {
			e.log.Warn("not all that nobody uses could be removed", "err", err)
		}
	}
	if !cleaned {
		return false
	}
	signals, err := e.deps.Stats.Signals(ctx)
	return err == nil && relieved(thresholds, levelsOf(signals))
}

// usedBy finds out what pods use, by one of the summaries.
func usedBy(ctx context.Context, ask func(context.Context) (*statsapi.Summary, error)) (usages, error) {
	summary, err := ask(ctx)
	if err != nil {
		return nil, err
	}
	return usagesOf(summary.Pods), nil
}

func (e *Evictor) noteUnknown(err error) {
	if err != nil {
		e.log.Error("pods are evicted without knowing what they use", "err", err)
	}
}

// grace is what the pod gets to end by itself, in seconds.
func (e *Evictor) grace(p *v1.Pod, t Threshold) int64 {
	if t.hard() {
		return hardGrace
	}
	grace := e.cfg.MaxGrace
	if own := p.Spec.TerminationGracePeriodSeconds; own != nil {
		grace = min(grace, *own)
	}
	return max(grace, hardGrace)
}
