package runtime

import (
	"cmp"
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/contain"
	"swiftlet/internal/klogfmt"
	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// StopCause says why a container is stopped: a failed probe may have a grace period of its own.
type StopCause int

const (
	StopPlain StopCause = iota
	StopLiveness
	StopStartup
)

// StopOptions says how to stop containers.
type StopOptions struct {
	// PodEnds: the whole pod terminates; sidecars stop after main containers.
	PodEnds bool
	Cause   StopCause
	// Message is the message of the Killing event, "" for the default one.
	Message string
	// Grace overrides the pod's grace period, in seconds.
	Grace *int64
	// PodIPs are the addresses for preStop hooks over HTTP.
	PodIPs []string
	// Turn, if set, is called after the preStop hook. It returns when the container may be
	// stopped, or when ctx ends because the grace period is over.
	Turn func(ctx context.Context)
}

// stopContainer runs the preStop hook and stops the container. It returns when the container has
// exited. For a pod that no longer exists, p is what Restore returns.
func (r *Runtime) stopContainer(ctx context.Context, p *v1.Pod, c *pod.Container, how StopOptions) error {
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
		// A hook that takes longer than the grace period runs until its container has exited.
		defer hook.end()
		grace -= hook.wait()
	}
	if how.Turn != nil && grace > 0 {
		turn := r.startStep(ctx, grace, how.Turn)
		grace -= turn.wait()
		turn.end()
	}
	r.deps.Log.Log(ctx, klogfmt.V2, "Killing container with a grace period", pod.RefOf(p).Attr(),
		"containerName", c.Name, "containerID", c.ID, "gracePeriod", int64(grace/time.Second))
	killing := why.Step{Kind: why.Kill, Name: c.Name}
	r.deps.Why.Begin(p.UID, killing, r.deps.Clock.Now())
	err := r.deps.CRI.StopContainer(ctx, c.ID, max(grace, pod.MinGracePeriod))
	if ctx.Err() == nil { // else it is repeated with a shorter grace period
		r.deps.Why.End(p.UID, killing, err, r.deps.Clock.Now(), time.Time{})
	}
	return err
}

// gracePeriod returns the time for the preStop hook and the container together.
func gracePeriod(p *v1.Pod, spec *v1.Container, how StopOptions) time.Duration {
	seconds := pod.GracePeriod(p, how.Grace)
	if seconds == nil {
		return pod.MinGracePeriod
	}
	if probe := causeProbe(spec, how.Cause); probe != nil && how.Grace == nil && p.DeletionGracePeriodSeconds == nil {
		seconds = firstSet(probe.TerminationGracePeriodSeconds, seconds)
	}
	return pod.Seconds(*seconds)
}

// causeProbe returns the probe that failed, if one did. It may have its own grace period.
func causeProbe(spec *v1.Container, cause StopCause) *v1.Probe {
	switch cause {
	case StopLiveness:
		return spec.LivenessProbe
	case StopStartup:
		return spec.StartupProbe
	}
	return nil
}

// step is a part of stopping a container that counts towards its grace period.
type step struct {
	clock  clock.PassiveClock
	began  time.Time
	limit  clock.Timer
	done   chan struct{}
	result func() // waits, and passes on a panic
	cancel context.CancelFunc
}

// startStep calls run in a goroutine and measures its time from now.
func (r *Runtime) startStep(ctx context.Context, grace time.Duration, run func(ctx context.Context)) *step {
	ctx, cancel := context.WithCancel(ctx)
	s := &step{
		clock: r.deps.Clock, began: r.deps.Clock.Now(), limit: r.deps.Clock.NewTimer(grace),
		done: make(chan struct{}), cancel: cancel,
	}
	s.result = contain.Go(func() {
		defer close(s.done)
		run(ctx)
	})
	return s
}

// wait waits until the step is done or the grace period is over. It returns the whole seconds
// that took: CRI counts grace periods in seconds.
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
	s.result()
}

// preStop runs the hook until it ends, or until hookCtx ends because the container has exited.
// ctx is that of the stop: if it is canceled, the stop and its hook are retried.
func (r *Runtime) preStop(ctx, hookCtx context.Context, call hookCall) {
	step := why.Step{Kind: why.PreStop, Name: call.container.Name}
	r.deps.Why.Begin(call.pod.UID, step, r.deps.Clock.Now())
	err := r.runHook(hookCtx, call)
	r.deps.Why.End(call.pod.UID, step, nil, r.deps.Clock.Now(), time.Time{}) // a failure keeps nothing from ending
	switch {
	case err == nil:
	case ctx.Err() != nil, hookCtx.Err() != nil && call.hook.Sleep != nil:
		r.deps.Log.Info("preStop hook interrupted", pod.RefOf(call.pod).Attr(), "container", call.container.Name)
	default:
		r.deps.Log.Error("preStop hook failed", pod.RefOf(call.pod).Attr(), "container", call.container.Name, "err", err)
		// The hook's output is kept out of the event: it may contain secrets of the pod.
		r.containerEvent(call.pod, call.container.Name, call.id, v1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed")
	}
}
