package tracing

import (
	"io"
	"net/http"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Transport creates a span for each request through next, which ends when the response body is read,
// and propagates the trace to the server.
func (p *Provider) Transport(next http.RoundTripper) http.RoundTripper {
	return &transport{next: next, tracer: p.tracer(), propagator: p.propagator}
}

type transport struct {
	next       http.RoundTripper
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
}

// RoundTrip clones the request, because a RoundTripper must not modify it.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, span := t.tracer.Start(request.Context(), "HTTP "+request.Method, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(
			attribute.String("http.request.method", request.Method),
			attribute.String("server.address", request.URL.Hostname()),
			attribute.String("url.full", request.URL.Redacted()),
		))
	request = request.Clone(ctx)
	t.propagator.Inject(ctx, propagation.HeaderCarrier(request.Header))
	response, err := t.next.RoundTrip(request)
	if err != nil {
		endSpan(span, err)
		return nil, err
	}
	span.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
	if response.StatusCode >= http.StatusBadRequest {
		span.SetStatus(codes.Error, "")
	}
	if response.Body == nil || response.StatusCode == http.StatusSwitchingProtocols {
		span.End()
		return response, nil
	}
	response.Body = &body{ReadCloser: response.Body, end: sync.OnceFunc(func() { span.End() })}
	return response, nil
}

// WrappedRoundTripper lets client-go close idle connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// body calls end when it is read completely or closed, whichever comes first.
type body struct {
	io.ReadCloser
	end func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

func (b *body) Close() error {
	b.end()
	return b.ReadCloser.Close()
}
