package eviction

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

const (
	// hardGrace is what a pod gets, in seconds, where there is no time to lose.
	hardGrace = 1
	// patience is how long an evicted pod is waited for before the next may have to go.
	patience = 30 * time.Second
	// retry is when it is tried again where nothing helped.
	retry = time.Second
	// repeat is how often the node's events tell of a want that goes on.
	repeat = 10 * time.Second
)

// relieve does something about the most urgent of the thresholds that are due: it removes
// what nobody uses, or ends one pod and waits for that. It reports whether it is worth
// looking again at once.
func (e *Evictor) relieve(ctx context.Context, levels Levels, due []int) bool {
	t := e.thresholds[due[0]]
	starved := traits[t.Signal].resource
	e.tell(starved)
	if e.clean(ctx, t.Signal) {
		e.log.Info("enough could be removed that nobody uses", "resource", starved)
		return true
	}
	used, err := e.measure(ctx, t.Signal)
	if err != nil {
		e.log.Error("pods are evicted without knowing what they use", "err", err)
	}
	for _, p := range rank(e.deps.Pods.Active(), used, t.Signal, e.layoutOf()) {
		if pod.IsCritical(p) {
			continue // a static one would not come back, the others are what the node needs
		}
		for _, i := range due {
			signal := e.thresholds[i].Signal
			e.deps.Meters.StatsAge.Took(string(signal), e.deps.Clock.Since(levels[signal].At))
		}
		why := blameFor(p, used[p.UID], t, levels[t.Signal])
		if e.evict(ctx, []victim{{pod: p, grace: e.grace(p, t), blame: why, condition: why.disruption(), counted: string(t.Signal)}}) {
			e.settles(t.Signal, levels)
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

// clean removes what nobody uses, and reports whether that was enough.
func (e *Evictor) clean(ctx context.Context, s Signal) bool {
	containers, images := e.layoutOf().spare(s)
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
	return err == nil && relieved(e.thresholds, levelsOf(signals))
}

// measure finds out what pods use of what is short. Memory cannot wait for disks.
func (e *Evictor) measure(ctx context.Context, s Signal) (usages, error) {
	ask := e.deps.Stats.Summary
	if traits[s].resource == v1.ResourceMemory {
		ask = e.deps.Stats.UsageSummary
	}
	summary, err := ask(ctx)
	if err != nil {
		return nil, err
	}
	return usagesOf(summary.Pods), nil
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

// victim is a pod that is to go.
type victim struct {
	pod   *v1.Pod
	grace int64
	blame
	condition *v1.PodCondition
	counted   string
}

// evict ends pods and waits until they have given back what they held. It reports whether
// any of them was there to be ended.
func (e *Evictor) evict(ctx context.Context, victims []victim) bool {
	var ends []<-chan struct{}
	for _, v := range victims {
		finished, found := e.deps.Pods.Finished(v.pod.UID)
		if !found {
			continue
		}
		e.log.Info("evicting a pod", "pod", pod.RefOf(v.pod).String(), "for", v.counted, "message", v.message, "grace", v.grace)
		e.deps.Events.AnnotatedEventf(pod.EventRef(v.pod, ""), v.annotations, v1.EventTypeWarning, reason, "%s", v.message)
		failure := pod.Failure{Reason: reason, Message: v.message, Condition: v.condition}
		if e.deps.Pods.Evict(v.pod.UID, failure, &v.grace) {
			e.deps.Meters.Evicted.Inc(v.counted)
			ends = append(ends, finished)
		}
	}
	timer := e.deps.Clock.NewTimer(patience)
	defer timer.Stop()
	for _, end := range ends {
		select {
		case <-end:
		case <-timer.C():
			e.log.Warn("evicted pods take long to end")
			return true
		case <-ctx.Done():
			return true
		}
	}
	return len(ends) > 0
}
