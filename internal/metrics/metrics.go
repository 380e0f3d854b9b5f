package metrics

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	// These hook client-go's requests and work queues, and the build's version, to the
	// registry of the Kubernetes libraries, which also shows the Go runtime, the process
	// and the feature gates.
	_ "k8s.io/component-base/metrics/prometheus/restclient"
	_ "k8s.io/component-base/metrics/prometheus/version"
	_ "k8s.io/component-base/metrics/prometheus/workqueue"
)

const (
	kubelet        = "kubelet_"
	authentication = "authentication_token_cache_"
)

// Metrics makes instruments and shows what they measured. Each of the methods that return
// instruments is to be called once.
type Metrics struct {
	clock    clock.PassiveClock
	registry *prometheus.Registry
	starts   *starts
}

// New makes a set without instruments.
func New(clock clock.PassiveClock) (*Metrics, error) {
	if clock == nil {
		return nil, errors.New("make metrics: a clock is needed")
	}
	m := &Metrics{clock: clock, registry: prometheus.NewRegistry()}
	m.starts = m.newStarts()
	return m, nil
}

// Gatherer reads all that was measured, by this package's instruments and those of the
// Kubernetes libraries.
func (m *Metrics) Gatherer() prometheus.Gatherer {
	return prometheus.Gatherers{m.registry, legacyregistry.DefaultGatherer}
}

// registered makes a collector part of what is shown. One that is made twice is a mistake
// of the program's, found by the first test that runs it.
func registered[T prometheus.Collector](m *Metrics, c T) T {
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	return registered(m, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help}))
}

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return registered(m, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

func (m *Metrics) gauge(name, help string) prometheus.Gauge {
	return registered(m, prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help}))
}

func (m *Metrics) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return registered(m, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels))
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Histogram {
	return registered(m, prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}))
}

func (m *Metrics) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return registered(m, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels))
}

// seconds has a histogram take durations.
func seconds(h prometheus.Observer) func(time.Duration) {
	return func(d time.Duration) { h.Observe(d.Seconds()) }
}

// secondsOf has histograms take durations by one label.
func secondsOf(h *prometheus.HistogramVec) func(string, time.Duration) {
	return func(kind string, d time.Duration) { h.WithLabelValues(kind).Observe(d.Seconds()) }
}

// count has a counter count by one label.
func count(c *prometheus.CounterVec) func(string) {
	return func(kind string) { c.WithLabelValues(kind).Inc() }
}

// static is the label of pods that come from a file or a URL.
func static(is bool) string {
	if is {
		return "true"
	}
	return ""
}
