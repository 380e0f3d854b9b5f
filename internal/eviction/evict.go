package eviction

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

const (
	// hardGrace is the grace period in seconds for a hard threshold.
	hardGrace = 1
	// terminationTimeout is how long the Evictor waits for an evicted pod to terminate before
	// it may evict another. A longer grace period extends it.
	terminationTimeout = 30 * time.Second
)

// victim is a pod to evict.
type victim struct {
	pod   *v1.Pod
	grace int64
	explanation
	condition *v1.PodCondition
	label     string   // of the metric: a signal or a limit
	reclaims  []Signal // backing signals, see Layout
}

// terminatingPod is an evicted pod that has not yet released all its resources.
type terminatingPod struct {
	ref      pod.Ref
	grace    int64
	killedBy time.Time // when its processes are dead, unless they are stuck in the kernel
	deadline time.Time // after it the pod counts as stuck
	stuck    bool
	reclaims []Signal
}

// setGrace sets the pod's grace period, which begins now.
func (l *terminatingPod) setGrace(grace int64, now time.Time) {
	l.grace = grace
	l.killedBy = now.Add(time.Duration(grace)*time.Second + pod.MinGracePeriod)
	l.deadline = now.Add(terminationTimeout + time.Duration(grace-hardGrace)*time.Second)
}

// evict evicts a pod, or shortens the grace period of one that terminates already. It reports
// whether the pod was found. It waits for the pod's termination in the background.
func (e *Evictor) evict(ctx context.Context, v victim) bool {
	uid := v.pod.UID
	failure := pod.Failure{Reason: reason, Message: v.message, Signal: v.label, Condition: v.condition}
	if l := e.terminating[uid]; l != nil {
		l.reclaims = append(l.reclaims, v.reclaims...)
		if v.grace < l.grace {
			e.log.Info("evict pod: shortening grace period", pod.RefOf(v.pod).Attr(), "signal", v.label, "gracePeriodSeconds", v.grace)
			e.deps.Pods.Evict(uid, failure, &v.grace)
			l.setGrace(v.grace, e.deps.Clock.Now())
		}
		return true
	}
	finished, found := e.deps.Pods.Finished(uid)
	if !found {
		return false
	}
	e.log.Info("evicting pod", pod.RefOf(v.pod).Attr(), "signal", v.label, "message", v.message, "gracePeriodSeconds", v.grace)
	e.deps.Events.AnnotatedEventf(pod.EventRef(v.pod, ""), v.annotations, v1.EventTypeWarning, reason, "%s", v.message)
	if !e.deps.Pods.Evict(uid, failure, &v.grace) {
		return false
	}
	e.deps.Meters.Evicted.Inc(v.label)
	l := &terminatingPod{ref: pod.RefOf(v.pod), reclaims: v.reclaims}
	l.setGrace(v.grace, e.deps.Clock.Now())
	e.terminating[uid] = l
	e.runInBackground(ctx, func() func() {
		select {
		case <-finished:
		case <-ctx.Done():
		}
		return func() {
			delete(e.terminating, uid)
			e.startSettling(l.reclaims)
		}
	})
	return true
}

// giveUpOnStuckPods marks pods that take too long to terminate, so that the Evictor may evict
// others instead. It returns when to call it again.
func (e *Evictor) giveUpOnStuckPods(now time.Time) time.Duration {
	wait := period
	memoryShort := slices.ContainsFunc(e.state.due, func(i int) bool { return ofMemory(e.thresholds[i].Signal) })
	for _, l := range e.terminating {
		// The kernel frees memory when the processes die, whatever else takes long. If memory
		// is short again after that, another pod uses it.
		if !memoryShort && now.After(l.killedBy) {
			l.reclaims = slices.DeleteFunc(l.reclaims, ofMemory)
		}
		if l.stuck {
			continue
		}
		if remaining := l.deadline.Sub(now); remaining > 0 {
			wait = min(wait, remaining)
			continue
		}
		e.log.Warn("evict pod: pod does not terminate", l.ref.Attr())
		l.stuck = true
	}
	return wait
}

// beingReclaimed reports whether a terminating pod will release what the threshold is about.
// A pod with a longer grace period does not satisfy a hard threshold.
func (e *Evictor) beingReclaimed(t Threshold) bool {
	for _, l := range e.terminating {
		if !l.stuck && slices.Contains(l.reclaims, e.currentLayout().backing(t.Signal)) && (!t.hard() || l.grace <= hardGrace) {
			return true
		}
	}
	return false
}
