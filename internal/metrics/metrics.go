package metrics

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	// These register metrics of client-go's requests, of work queues and of the build's version
	// with the registry of the Kubernetes libraries, which also has metrics of the Go runtime,
	// the process and feature gates.
	_ "k8s.io/component-base/metrics/prometheus/restclient"
	_ "k8s.io/component-base/metrics/prometheus/version"
	_ "k8s.io/component-base/metrics/prometheus/workqueue"

	"swiftlet/internal/require"
)

const (
	kubelet        = "kubelet_"
	authentication = "authentication_token_cache_"
)

// Metrics creates instruments and gathers their measurements. Each method that returns instruments
// must be called at most once.
type Metrics struct {
	clock    clock.PassiveClock
	registry *prometheus.Registry
	starts   *startTracker
}

// New returns Metrics without instruments.
func New(clock clock.PassiveClock, log *slog.Logger) (*Metrics, error) {
	if err := require.Set("new metrics", map[string]any{"clock": clock, "log": log}); err != nil {
		return nil, err
	}
	m := &Metrics{clock: clock, registry: prometheus.NewRegistry()}
	m.starts = m.newStartTracker(log)
	return m, nil
}

// Gatherer gathers the metrics of this package and of the Kubernetes libraries.
func (m *Metrics) Gatherer() prometheus.Gatherer {
	return prometheus.Gatherers{m.registry, legacyregistry.DefaultGatherer}
}

// register registers a collector. It panics if the metric exists already, which is a bug that any
// test of the caller finds.
func register[T prometheus.Collector](m *Metrics, c T) T {
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	return register(m, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help}))
}

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return register(m, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

func (m *Metrics) gauge(name, help string) prometheus.Gauge {
	return register(m, prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help}))
}

func (m *Metrics) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return register(m, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels))
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Histogram {
	return register(m, prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}))
}

func (m *Metrics) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return register(m, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels))
}

// observeSeconds adapts a histogram to durations.
func observeSeconds(h prometheus.Observer) func(time.Duration) {
	return func(d time.Duration) { h.Observe(d.Seconds()) }
}

// observeSecondsBy adapts histograms with one label to durations.
func observeSecondsBy(h *prometheus.HistogramVec) func(string, time.Duration) {
	return func(kind string, d time.Duration) { h.WithLabelValues(kind).Observe(d.Seconds()) }
}

// incBy adapts counters with one label.
func incBy(c *prometheus.CounterVec) func(string) {
	return func(kind string) { c.WithLabelValues(kind).Inc() }
}

// staticLabel is the value of the label "static" of a pod.
func staticLabel(static bool) string {
	if static {
		return "true"
	}
	return ""
}
