package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
	"swiftlet/internal/worker"
)

// steps traces the steps of one pod's life. Those that bring it up are one trace, from the
// moment the pod was first seen until all its containers have started; every later step is
// a trace of its own.
type steps struct {
	worker.Steps
	tracer trace.Tracer
	// shown is the pod's status as last derived.
	shown func(types.UID) (v1.PodStatus, bool)

	begun bool       // the first step was
	start trace.Span // nil before the first step, and once the pod has started
}

// Steps traces the steps that newSteps makes, one pod at a time. shown returns a pod's status
// as last derived.
func (p *Provider) Steps(newSteps func() worker.Steps, shown func(types.UID) (v1.PodStatus, bool)) func() worker.Steps {
	return func() worker.Steps { return &steps{Steps: newSteps(), tracer: p.tracer(), shown: shown} }
}

// Sync is part of the pod's start until that is over.
func (s *steps) Sync(ctx context.Context, w pod.Work) (pod.Outcome, error) {
	ctx, done := start(s.within(ctx, w), s.tracer, "syncPod", about(w.Pod)...)
	outcome, err := s.Steps.Sync(ctx, w)
	done(err)
	if outcome.Ended || outcome.Failure != nil || s.isUp(w.Pod) {
		s.over()
	}
	return outcome, err
}

// Stop ends a start that was still going on: it is not going to succeed.
func (s *steps) Stop(ctx context.Context, w pod.Work) error {
	s.over()
	ctx, done := start(ctx, s.tracer, "syncTerminatingPod", about(w.Pod)...)
	err := s.Steps.Stop(ctx, w)
	done(err)
	return err
}

// Finish is shown as what it is.
func (s *steps) Finish(ctx context.Context, w pod.Work) error {
	ctx, done := start(ctx, s.tracer, "syncTerminatedPod", about(w.Pod)...)
	err := s.Steps.Finish(ctx, w)
	done(err)
	return err
}

// within puts the step into the trace of the pod's start, which begins with its first step.
// A pod that ran before this agent did is not started by it.
func (s *steps) within(ctx context.Context, w pod.Work) context.Context {
	if !s.begun && !s.isUp(w.Pod) && !allRunning(&w.Pod.Status, w.Pod) {
		_, s.start = s.tracer.Start(ctx, "podStart", trace.WithNewRoot(), trace.WithTimestamp(seenAt(w.Pod)), trace.WithAttributes(about(w.Pod)...))
	}
	s.begun = true
	if s.start == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.start)
}

// over ends the pod's start.
func (s *steps) over() {
	if s.start != nil {
		s.start.End()
	}
	s.begun, s.start = true, nil
}

func (s *steps) isUp(p *v1.Pod) bool {
	status, known := s.shown(p.UID)
	return known && allRunning(&status, p)
}

// allRunning reports whether the status shows all containers of the pod running.
func allRunning(status *v1.PodStatus, p *v1.Pod) bool {
	running := 0
	for _, c := range status.ContainerStatuses {
		if c.State.Running != nil {
			running++
		}
	}
	return running == len(p.Spec.Containers)
}

// seenAt returns when the agent first saw the pod. Where that is unknown it returns the zero
// time, and a span starts when it is made.
func seenAt(p *v1.Pod) time.Time {
	seen, err := time.Parse(time.RFC3339Nano, p.Annotations[pod.AnnotationSeen])
	if err != nil {
		return time.Time{}
	}
	return seen
}
