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

// Transport shows the requests that go through next, each from its sending until its answer
// has been read, and has them carry the trace they are part of.
func (p *Provider) Transport(next http.RoundTripper) http.RoundTripper {
	return &transport{next: next, tracer: p.tracer(), propagator: p.propagator}
}

type transport struct {
	next       http.RoundTripper
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
}

// RoundTrip leaves the caller's request as it is, as the contract of transports asks.
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
		end(span, err)
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
	response.Body = &body{ReadCloser: response.Body, over: sync.OnceFunc(func() { span.End() })}
	return response, nil
}

// WrappedRoundTripper lets others reach the transport, to close idle connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// body is over when it has been read or is closed, whichever comes first.
type body struct {
	io.ReadCloser
	over func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.over()
	}
	return n, err
}

func (b *body) Close() error {
	b.over()
	return b.ReadCloser.Close()
}
