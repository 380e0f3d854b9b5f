// Package tracing exports OpenTelemetry traces: one for each start of a pod, with a span for each
// step and each call to the container runtime or the API server, and one for each request to the
// kubelet's API. It wraps the interfaces of the packages that it traces; they do not depend on it,
// and without tracing in the configuration nothing is wrapped.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/stats"
	tracingapi "k8s.io/component-base/tracing/api/v1"

	"swiftlet/internal/clip"
)

// scope is the instrumentation scope of all spans.
const scope = "swiftlet"

// flushTimeout limits the export of the last spans on shutdown.
const flushTimeout = 2 * time.Second

// Provider creates spans and exports them to a collector over OTLP gRPC.
type Provider struct {
	sdk        *sdktrace.TracerProvider
	propagator propagation.TextMapPropagator
}

// New returns a Provider for the configured collector. Spans are dropped while the collector is
// unavailable. They are exported from now on; Run exports the last ones on shutdown.
func New(ctx context.Context, cfg *tracingapi.TracingConfiguration, host string, log *slog.Logger) (*Provider, error) {
	// The library has one error handler for the whole process.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("export traces: failed", "err", err) }))
	options := []otlptracegrpc.Option{otlptracegrpc.WithInsecure()}
	if cfg.Endpoint != nil {
		options = append(options, otlptracegrpc.WithEndpoint(*cfg.Endpoint))
	}
	exporter, err := otlptracegrpc.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("new trace exporter: %w", err)
	}
	// Without a sampling rate only spans with a sampled parent are recorded.
	sampler := sdktrace.NeverSample()
	if rate := cfg.SamplingRatePerMillion; rate != nil && *rate > 0 {
		sampler = sdktrace.TraceIDRatioBased(float64(*rate) / 1e6)
	}
	return newProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sampler)),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "kubelet"), attribute.String("host.name", host))),
	), nil
}

func newProvider(options ...sdktrace.TracerProviderOption) *Provider {
	// Spans have texts of others: paths of requests, errors of the runtime.
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = clip.Message
	return &Provider{
		sdk:        sdktrace.NewTracerProvider(append(options, sdktrace.WithRawSpanLimits(limits))...),
		propagator: propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}),
	}
}

// Run waits for ctx to be done and then exports the last spans.
func (p *Provider) Run(ctx context.Context) error {
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	// An unavailable collector must not make the shutdown fail.
	_ = p.sdk.Shutdown(last)
	return nil
}

// CRI creates spans for calls to the container runtime and propagates the trace to it.
func (p *Provider) CRI() stats.Handler {
	return otelgrpc.NewClientHandler(otelgrpc.WithTracerProvider(p.sdk), otelgrpc.WithPropagators(p.propagator))
}

func (p *Provider) tracer() trace.Tracer { return p.sdk.Tracer(scope) }
