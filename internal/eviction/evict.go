package eviction

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

const (
	// hardGrace is what a pod gets, in seconds, where there is no time to lose.
	hardGrace = 1
	// patience is how long an evicted pod is waited for before the next may have to go. One
	// with a longer grace has so much more.
	patience = 30 * time.Second
)

// victim is a pod that is to go.
type victim struct {
	pod   *v1.Pod
	grace int64
	blame
	condition *v1.PodCondition
	counted   string
	frees     []Signal // places, as Layout has them
}

// leaver is a pod that was evicted and has not given back all that it held.
type leaver struct {
	grace  int64
	killed time.Time // by then its processes are, if they can be
	until  time.Time // it is waited for
	stuck  bool      // it was, in vain
	frees  []Signal
}

// within sets how long the pod has from now on.
func (l *leaver) within(grace int64, now time.Time) {
	l.grace = grace
	l.killed = now.Add(time.Duration(grace)*time.Second + pod.MinStop)
	l.until = now.Add(patience + time.Duration(grace-hardGrace)*time.Second)
}

// evict ends a pod, or hastens the end of one that goes already. It reports whether the pod
// was there to be ended. Its end is waited for aside.
func (e *Evictor) evict(ctx context.Context, v victim) bool {
	uid := v.pod.UID
	failure := pod.Failure{Reason: reason, Message: v.message, Condition: v.condition}
	if l := e.leaving[uid]; l != nil {
		l.frees = append(l.frees, v.frees...)
		if v.grace < l.grace {
			e.log.Info("hastening a pod's end", "pod", pod.RefOf(v.pod).String(), "for", v.counted, "grace", v.grace)
			e.deps.Pods.Evict(uid, failure, &v.grace)
			l.within(v.grace, e.deps.Clock.Now())
		}
		return true
	}
	finished, found := e.deps.Pods.Finished(uid)
	if !found {
		return false
	}
	e.log.Info("evicting a pod", "pod", pod.RefOf(v.pod).String(), "for", v.counted, "message", v.message, "grace", v.grace)
	e.deps.Events.AnnotatedEventf(pod.EventRef(v.pod, ""), v.annotations, v1.EventTypeWarning, reason, "%s", v.message)
	if !e.deps.Pods.Evict(uid, failure, &v.grace) {
		return false
	}
	e.deps.Meters.Evicted.Inc(v.counted)
	l := &leaver{frees: v.frees}
	l.within(v.grace, e.deps.Clock.Now())
	e.leaving[uid] = l
	e.aside(ctx, func() func() {
		select {
		case <-finished:
		case <-ctx.Done():
		}
		return func() {
			delete(e.leaving, uid)
			e.settles(l.frees)
		}
	})
	return true
}

// waitForLeaving gives up on pods that take too long to end, so that others may be evicted in
// their stead, and returns when it is to be called again.
func (e *Evictor) waitForLeaving(now time.Time) time.Duration {
	wait := period
	short := slices.ContainsFunc(e.state.due, func(i int) bool { return ofMemory(e.thresholds[i].Signal) })
	for uid, l := range e.leaving {
		// Memory is given back with the processes, whatever else takes long to end. If it is
		// short again after that, somebody else is to blame.
		if !short && now.After(l.killed) {
			l.frees = slices.DeleteFunc(l.frees, ofMemory)
		}
		if l.stuck {
			continue
		}
		if rest := l.until.Sub(now); rest > 0 {
			wait = min(wait, rest)
			continue
		}
		e.log.Warn("an evicted pod does not end", "uid", uid)
		l.stuck = true
	}
	return wait
}

// held reports whether a pod goes that gives back what a threshold is about. One that takes
// its time is no answer to a hard threshold.
func (e *Evictor) held(t Threshold) bool {
	for _, l := range e.leaving {
		if !l.stuck && slices.Contains(l.frees, e.layoutOf().place(t.Signal)) && (!t.hard() || l.grace <= hardGrace) {
			return true
		}
	}
	return false
}
