package tracing

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
	"swiftlet/internal/worker"
)

// steps shows the steps of a pod's life. Those that bring it up are one trace, from the
// moment the pod was first seen until all its containers have started; every later step is
// a trace of its own.
type steps struct {
	worker.Steps
	tracer trace.Tracer
	// shown is the pod's status as last derived.
	shown func(types.UID) (v1.PodStatus, bool)

	mu     sync.Mutex
	starts map[types.UID]trace.Span // nil once the pod has started
}

// Steps stands around the steps of pods' lives. shown tells a pod's status as last derived.
func (p *Provider) Steps(inner worker.Steps, shown func(types.UID) (v1.PodStatus, bool)) worker.Steps {
	return &steps{Steps: inner, tracer: p.tracer(), shown: shown, starts: map[types.UID]trace.Span{}}
}

// Sync is part of the pod's start until that is over.
func (s *steps) Sync(ctx context.Context, w pod.Work) (pod.Outcome, error) {
	ctx, done := start(s.within(ctx, w), s.tracer, "syncPod", about(w.Pod)...)
	outcome, err := s.Steps.Sync(ctx, w)
	done(err)
	if outcome.Ended || outcome.Failure != nil || s.isUp(w.Pod) {
		s.over(w.Pod.UID)
	}
	return outcome, err
}

// Stop ends a start that was still going on: it is not going to succeed.
func (s *steps) Stop(ctx context.Context, w pod.Work) error {
	s.over(w.Pod.UID)
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

// Remove forgets the pod once nothing is left of it.
func (s *steps) Remove(ctx context.Context, w pod.Work) error {
	err := s.Steps.Remove(ctx, w)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.starts, w.Pod.UID)
	}
	return err
}

// within puts the step into the trace of the pod's start, which begins with its first step.
// A pod that ran before this agent did is not started by it.
func (s *steps) within(ctx context.Context, w pod.Work) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	span, known := s.starts[w.Pod.UID]
	if !known {
		if !s.isUp(w.Pod) && !allRunning(&w.Pod.Status, w.Pod) {
			_, span = s.tracer.Start(ctx, "podStart", trace.WithNewRoot(), trace.WithTimestamp(seenAt(w.Pod)), trace.WithAttributes(about(w.Pod)...))
		}
		s.starts[w.Pod.UID] = span
	}
	if span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, span)
}

// over ends the pod's start.
func (s *steps) over(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if span := s.starts[uid]; span != nil {
		span.End()
	}
	s.starts[uid] = nil
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
