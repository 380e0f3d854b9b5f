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

// steps traces the steps of one pod's worker. The steps of its start are one trace, from when the
// kubelet first saw the pod until all its containers run. Every later step is a separate trace.
type steps struct {
	worker.Steps
	tracer trace.Tracer
	// status returns the pod's status as last derived.
	status func(types.UID) (v1.PodStatus, bool)

	begun bool       // the first step has started
	start trace.Span // nil before the first step, and once the pod has started
}

// Steps traces the steps that newSteps returns for each pod. status returns a pod's status as last
// derived.
func (p *Provider) Steps(newSteps func() worker.Steps, status func(types.UID) (v1.PodStatus, bool)) func() worker.Steps {
	return func() worker.Steps { return &steps{Steps: newSteps(), tracer: p.tracer(), status: status} }
}

// Sync is part of the pod's start until all containers run.
func (s *steps) Sync(ctx context.Context, w pod.Work) (pod.Outcome, error) {
	ctx, done := startSpan(s.inStart(ctx, w), s.tracer, "syncPod", podAttributes(w.Pod)...)
	outcome, err := s.Steps.Sync(ctx, w)
	done(err)
	if outcome.Ended || outcome.Failure != nil || s.isRunning(w.Pod) {
		s.endStart()
	}
	return outcome, err
}

// Stop ends a start that has not finished.
func (s *steps) Stop(ctx context.Context, w pod.Work) error {
	s.endStart()
	ctx, done := startSpan(ctx, s.tracer, "syncTerminatingPod", podAttributes(w.Pod)...)
	err := s.Steps.Stop(ctx, w)
	done(err)
	return err
}

// Finish is a trace of its own.
func (s *steps) Finish(ctx context.Context, w pod.Work) error {
	ctx, done := startSpan(ctx, s.tracer, "syncTerminatedPod", podAttributes(w.Pod)...)
	err := s.Steps.Finish(ctx, w)
	done(err)
	return err
}

// inStart makes the step part of the pod's start, which begins with the first step. A pod that
// already runs when the kubelet starts has no start.
func (s *steps) inStart(ctx context.Context, w pod.Work) context.Context {
	if !s.begun && !s.isRunning(w.Pod) && !allRunning(&w.Pod.Status, w.Pod) {
		_, s.start = s.tracer.Start(ctx, "podStart", trace.WithNewRoot(), trace.WithTimestamp(seenAt(w.Pod)), trace.WithAttributes(podAttributes(w.Pod)...))
	}
	s.begun = true
	if s.start == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.start)
}

// endStart ends the pod's start.
func (s *steps) endStart() {
	if s.start != nil {
		s.start.End()
	}
	s.begun, s.start = true, nil
}

func (s *steps) isRunning(p *v1.Pod) bool {
	derived, ok := s.status(p.UID)
	return ok && allRunning(&derived, p)
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

// seenAt returns when the kubelet first saw the pod, or the zero time if it is unknown, which makes
// a span start now.
func seenAt(p *v1.Pod) time.Time {
	seen, err := time.Parse(time.RFC3339Nano, p.Annotations[pod.AnnotationSeen])
	if err != nil {
		return time.Time{}
	}
	return seen
}
