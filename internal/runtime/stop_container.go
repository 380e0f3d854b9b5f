package runtime

import (
	"cmp"
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
)

// StopCause says why a container is stopped, where that decides how long it may take.
type StopCause int

const (
	StopPlain StopCause = iota
	StopLiveness
	StopStartup
)

// Stop says how to stop containers.
type Stop struct {
	// PodEnds: all of the pod ends, its containers in order.
	PodEnds bool
	Cause   StopCause
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

// stopContainer runs the preStop hook and stops the container, and returns when it has
// ended. Of a pod that is gone, Restore gives what p must hold.
func (r *Runtime) stopContainer(ctx context.Context, p *v1.Pod, c *pod.Container, how Stop) error {
	spec := pod.FindContainer(p, c.Name)
	if spec == nil {
		restored := restoreContainer(*c)
		spec = &restored
	}
	grace := gracePeriod(p, spec, how)
	r.containerEvent(p, c.Name, c.ID, v1.EventTypeNormal, "Killing", cmp.Or(how.Message, "Stopping container "+c.Name))
	if spec.Lifecycle != nil && spec.Lifecycle.PreStop != nil && grace > 0 {
		hook := r.startStep(ctx, grace, func(hookCtx context.Context) {
			r.preStop(ctx, hookCtx, hookCall{pod: p, container: spec, id: c.ID, podIPs: how.PodIPs, hook: spec.Lifecycle.PreStop})
		})
		// A hook that outlasts the grace period runs on until its container has ended.
		defer hook.end()
		grace -= hook.wait()
	}
	if how.Turn != nil && grace > 0 {
		turn := r.startStep(ctx, grace, how.Turn)
		grace -= turn.wait()
		turn.end()
	}
	return r.deps.CRI.StopContainer(ctx, c.ID, max(grace, pod.MinStop))
}

// gracePeriod is how long the container may take in all.
func gracePeriod(p *v1.Pod, spec *v1.Container, how Stop) time.Duration {
	seconds := pod.GracePeriod(p, how.Grace)
	if seconds == nil {
		return pod.MinStop
	}
	if probe := causeProbe(spec, how.Cause); probe != nil && how.Grace == nil && p.DeletionGracePeriodSeconds == nil {
		seconds = either(probe.TerminationGracePeriodSeconds, seconds)
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

// step is part of stopping a container that counts towards its grace period.
type step struct {
	clock  clock.PassiveClock
	began  time.Time
	limit  clock.Timer
	done   chan struct{}
	cancel context.CancelFunc
}

// startStep runs run, whose time counts from now.
func (r *Runtime) startStep(ctx context.Context, grace time.Duration, run func(ctx context.Context)) *step {
	ctx, cancel := context.WithCancel(ctx)
	s := &step{
		clock: r.deps.Clock, began: r.deps.Clock.Now(), limit: r.deps.Clock.NewTimer(grace),
		done: make(chan struct{}), cancel: cancel,
	}
	go func() {
		defer close(s.done)
		run(ctx)
	}()
	return s
}

// wait returns when the step is done, or when it has used up the grace period. It returns
// the whole seconds that took, which is how the runtime counts.
func (s *step) wait() time.Duration {
	defer s.limit.Stop()
	select {
	case <-s.done:
	case <-s.limit.C():
	}
	return s.clock.Since(s.began).Truncate(time.Second)
}

// end cancels the step and waits for it.
func (s *step) end() {
	s.cancel()
	<-s.done
}

// preStop runs the hook until it is done, or until hookCtx is because the container has
// ended. ctx is that of the stop: if that is canceled, the stop and its hook are tried again.
func (r *Runtime) preStop(ctx, hookCtx context.Context, call hookCall) {
	err := r.runHook(hookCtx, call)
	switch {
	case err == nil:
	case ctx.Err() != nil, hookCtx.Err() != nil && call.hook.Sleep != nil:
		r.deps.Log.Info("preStop hook was interrupted", "pod", pod.RefOf(call.pod).String(), "container", call.container.Name)
	default:
		r.deps.Log.Error("preStop hook failed", "pod", pod.RefOf(call.pod).String(), "container", call.container.Name, "error", err)
		// The hook's words stay out of the event: they may hold secrets of the pod.
		r.containerEvent(call.pod, call.container.Name, call.id, v1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed")
	}
}
