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

// HTTP creates a span for each request to next, named for its route. Trace headers of clients are
// not trusted, so a request starts a new trace, with a link to the client's.
func (p *Provider) HTTP(next http.Handler) http.Handler {
	tracer := p.tracer()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		remote := p.propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		options := []trace.SpanStartOption{
			trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.String("http.request.method", r.Method), attribute.String("url.path", r.URL.Path)),
		}
		if client := trace.SpanContextFromContext(remote); client.IsValid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: client}))
		}
		ctx, span := tracer.Start(r.Context(), r.Method, options...)
		defer span.End()
		recorder := &statusRecorder{ResponseWriter: w, code: http.StatusOK}
		r = r.WithContext(ctx)
		next.ServeHTTP(recorder, r)
		if r.Pattern != "" {
			span.SetName(r.Pattern)
			span.SetAttributes(attribute.String("http.route", r.Pattern))
		}
		span.SetAttributes(attribute.Int("http.response.status_code", recorder.code))
		if recorder.code >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
	})
}

// statusRecorder records the status code of a response. Streams flush and hijack it.
type statusRecorder struct {
	http.ResponseWriter
	code int
}

func (s *statusRecorder) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap implements the interface of http.ResponseController.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Flush implements http.Flusher.
func (s *statusRecorder) Flush() { _ = http.NewResponseController(s.ResponseWriter).Flush() }

// Hijack implements http.Hijacker.
func (s *statusRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	s.code = http.StatusSwitchingProtocols
	return http.NewResponseController(s.ResponseWriter).Hijack()
}
