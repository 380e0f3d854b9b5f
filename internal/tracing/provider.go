// Package tracing shows what the agent does as OpenTelemetry traces: one for each start of
// a pod, with a span for each step and each call to the container runtime or the API server,
// and one for each request to the node's API. It stands around the parts that it shows, which know nothing
// of it; where the configuration does not ask for tracing, it is not there at all.
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
)

// scope names the source of spans.
const scope = "swiftlet"

// flushTime is how long the last spans may take on the way down.
const flushTime = 2 * time.Second

// Provider makes spans and sends them to a collector over OTLP gRPC.
type Provider struct {
	sdk        *sdktrace.TracerProvider
	propagator propagation.TextMapPropagator
}

// New prepares sending to the configured collector, which need not be there: what cannot be
// delivered is dropped. Spans are gathered from the first on; Run must be called to have
// the last ones delivered.
func New(ctx context.Context, cfg *tracingapi.TracingConfiguration, host string, log *slog.Logger) (*Provider, error) {
	// The library knows one place to complain for the whole process.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces are not delivered", "err", err) }))
	options := []otlptracegrpc.Option{otlptracegrpc.WithInsecure()}
	if cfg.Endpoint != nil {
		options = append(options, otlptracegrpc.WithEndpoint(*cfg.Endpoint))
	}
	exporter, err := otlptracegrpc.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("send traces: %w", err)
	}
	// Without a rate only what somebody else decided to trace is.
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
	return &Provider{
		sdk:        sdktrace.NewTracerProvider(options...),
		propagator: propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}),
	}
}

// Run waits for ctx, and then for the last spans to be delivered.
func (p *Provider) Run(ctx context.Context) error {
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	// A collector that is not there is no reason to end otherwise than well.
	_ = p.sdk.Shutdown(last)
	return nil
}

// CRI shows the calls on a connection to the container runtime, and has them carry the
// trace they are part of.
func (p *Provider) CRI() stats.Handler {
	return otelgrpc.NewClientHandler(otelgrpc.WithTracerProvider(p.sdk), otelgrpc.WithPropagators(p.propagator))
}

func (p *Provider) tracer() trace.Tracer { return p.sdk.Tracer(scope) }
