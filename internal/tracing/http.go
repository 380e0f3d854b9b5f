package tracing

import (
	"bufio"
	"net"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// HTTP shows the requests to next, named by the route they took. Anybody can send trace
// headers, so a request is a trace of its own, which the client's is linked to.
func (p *Provider) HTTP(next http.Handler) http.Handler {
	tracer := p.tracer()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		remote := p.propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		options := []trace.SpanStartOption{
			trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.String("http.request.method", r.Method), attribute.String("url.path", r.URL.Path)),
		}
		if from := trace.SpanContextFromContext(remote); from.IsValid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: from}))
		}
		ctx, span := tracer.Start(r.Context(), r.Method, options...)
		defer span.End()
		answer := &answer{ResponseWriter: w, code: http.StatusOK}
		r = r.WithContext(ctx)
		next.ServeHTTP(answer, r)
		if r.Pattern != "" {
			span.SetName(r.Pattern)
			span.SetAttributes(attribute.String("http.route", r.Pattern))
		}
		span.SetAttributes(attribute.Int("http.response.status_code", answer.code))
		if answer.code >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
	})
}

// answer notes the code of an answer. Streams flush it and take its connection over.
type answer struct {
	http.ResponseWriter
	code int
}

func (a *answer) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController reach what the answer is written to.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush sends what was written so far.
func (a *answer) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() }

// Hijack hands over the connection.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	a.code = http.StatusSwitchingProtocols
	return http.NewResponseController(a.ResponseWriter).Hijack()
}
