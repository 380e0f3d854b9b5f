package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	v1 "k8s.io/api/core/v1"
)

// startSpan starts a span. The returned function ends it with the result of the operation.
func startSpan(ctx context.Context, tracer trace.Tracer, name string, attributes ...attribute.KeyValue) (context.Context, func(error)) {
	ctx, span := tracer.Start(ctx, name, trace.WithAttributes(attributes...))
	return ctx, func(err error) { endSpan(span, err) }
}

func endSpan(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// podAttributes are the attributes of the reference kubelet's spans.
func podAttributes(p *v1.Pod) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("k8s.pod.uid", string(p.UID)),
		attribute.String("k8s.pod", p.Namespace+"/"+p.Name),
		attribute.String("k8s.pod.name", p.Name),
		attribute.String("k8s.namespace.name", p.Namespace),
	}
}

func containerName(name string) attribute.KeyValue {
	return attribute.String("k8s.container.name", name)
}
