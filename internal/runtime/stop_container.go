package runtime

import (
	"cmp"
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// minGrace is what every container gets to end by itself, however little was asked for.
const minGrace = 2 * time.Second

// StopCause says why a container is stopped, where that decides how long it may take.
type StopCause int

const (
	StopPlain StopCause = iota
	StopLiveness
	StopStartup
)

// Stop says how to stop a container.
type Stop struct {
	Cause StopCause
	// Message is what the Killing event says, "" for the usual words.
	Message string
	// Grace overrides the time that the pod's spec gives, in seconds.
	Grace *int64
	// PodIPs are where a preStop hook over HTTP goes.
	PodIPs []string
	// Turn, where set, is called after the preStop hook and returns when the container
	// may be told to end, or when ctx is done because its time is up.
	Turn func(ctx context.Context)
}

// StopContainer runs the preStop hook and stops the container, and returns when it has
// ended. Of a pod that is gone, Restore gives what p must hold.
func (r *Runtime) StopContainer(ctx context.Context, p *v1.Pod, c *pod.Container, how Stop) error {
	spec := pod.FindContainer(p, c.Name)
	if spec == nil {
		restored := restoreContainer(*c)
		spec = &restored
	}
	grace := gracePeriod(p, spec, how)
	r.containerEvent(p, c.Name, c.ID, v1.EventTypeNormal, "Killing", cmp.Or(how.Message, "Stopping container "+c.Name))
	if spec.Lifecycle != nil && spec.Lifecycle.PreStop != nil && grace > 0 {
		grace -= r.spend(ctx, grace, func(ctx context.Context) {
			r.preStop(ctx, hookCall{pod: p, container: spec, id: c.ID, podIPs: how.PodIPs, hook: spec.Lifecycle.PreStop})
		})
	}
	if how.Turn != nil && grace > 0 {
		grace -= r.spend(ctx, grace, how.Turn)
	}
	return r.deps.CRI.StopContainer(ctx, c.ID, max(grace, minGrace))
}

// gracePeriod is how long the container may take in all.
func gracePeriod(p *v1.Pod, spec *v1.Container, how Stop) time.Duration {
	var seconds *int64
	switch {
	case how.Grace != nil:
		seconds = how.Grace
	case p.DeletionGracePeriodSeconds != nil:
		seconds = p.DeletionGracePeriodSeconds
	default:
		seconds = p.Spec.TerminationGracePeriodSeconds
		if probe := causeProbe(spec, how.Cause); probe != nil && seconds != nil {
			seconds = either(probe.TerminationGracePeriodSeconds, seconds)
		}
	}
	if seconds == nil {
		return minGrace
	}
	return time.Duration(*seconds) * time.Second
}

// causeProbe is the probe that failed, if one did: it may give its own time.
func causeProbe(spec *v1.Container, cause StopCause) *v1.Probe {
	switch cause {
	case StopLiveness:
		return spec.LivenessProbe
	case StopStartup:
		return spec.StartupProbe
	}
	return nil
}

// spend runs step for at most grace and returns the whole seconds it took, which is how
// the runtime counts.
func (r *Runtime) spend(ctx context.Context, grace time.Duration, step func(ctx context.Context)) time.Duration {
	start := r.deps.Clock.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := r.deps.Clock.NewTimer(grace)
	defer timer.Stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		step(ctx)
	}()
	select {
	case <-done:
	case <-timer.C():
		cancel()
		<-done
	}
	return r.deps.Clock.Since(start).Truncate(time.Second)
}

func (r *Runtime) preStop(ctx context.Context, call hookCall) {
	err := r.runHook(ctx, call)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		r.deps.Log.Info("preStop hook did not end in time", "pod", pod.RefOf(call.pod).String(), "container", call.container.Name)
	default:
		r.deps.Log.Error("preStop hook failed", "pod", pod.RefOf(call.pod).String(), "container", call.container.Name, "error", err)
		// The hook's words stay out of the event: they may hold secrets of the pod.
		r.containerEvent(call.pod, call.container.Name, call.id, v1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed")
	}
}
