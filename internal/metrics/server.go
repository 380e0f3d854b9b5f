package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"swiftlet/internal/meter"
)

// HTTP returns a function to call at the start of each request to the kubelet's API; its result is
// called at the end.
func (m *Metrics) HTTP() func(readOnly bool, method, path string, longRunning bool) (done func()) {
	labels := []string{"method", "path", "server_type", "long_running"}
	total := m.counters(kubelet+"http_requests_total", "Requests to the node's API.", labels...)
	took := m.histograms(kubelet+"http_requests_duration_seconds", "How long requests to the node's API took.", defaultBuckets, labels...)
	active := m.gauges(kubelet+"http_inflight_requests", "Requests to the node's API that are being served.", labels...)
	return func(readOnly bool, method, path string, longRunning bool) func() {
		serverType := "readwrite"
		if readOnly {
			serverType = "readonly"
		}
		values := []string{method, path, serverType, strconv.FormatBool(longRunning)}
		start := m.clock.Now()
		total.WithLabelValues(values...).Inc()
		inFlight := active.WithLabelValues(values...)
		inFlight.Inc()
		return func() {
			inFlight.Dec()
			took.WithLabelValues(values...).Observe(m.clock.Since(start).Seconds())
		}
	}
}

// WebSockets counts streams over WebSockets by subresource.
func (m *Metrics) WebSockets() meter.CountOf {
	return incBy(m.counters(kubelet+"websocket_streaming_requests_total", "Streams over WebSockets.", "subresource"))
}

// ClientCertificateExpiration observes the remaining lifetime of client certificates.
func (m *Metrics) ClientCertificateExpiration() meter.Timing {
	return observeSeconds(m.histogram("apiserver_client_certificate_expiration_seconds", "How long the certificates that clients show are still good for.", certificateLifetimeBuckets))
}

// Reviews observes the duration of TokenReviews and SubjectAccessReviews by status code.
func (m *Metrics) Reviews() (token, access meter.TimingOf) {
	of := func(name, help string) meter.TimingOf {
		total := m.counters("apiserver_delegated_"+name+"_request_total", "Questions to the API server "+help+".", "code")
		took := m.histograms("apiserver_delegated_"+name+"_request_duration_seconds", "How long it took to answer them.", reviewBuckets, "code")
		return func(code string, d time.Duration) {
			total.WithLabelValues(code).Inc()
			took.WithLabelValues(code).Observe(d.Seconds())
		}
	}
	return of("authn", "about whom a token belongs to"), of("authz", "about what somebody may do")
}

// TokenCache measures the cache of TokenReviews.
func (m *Metrics) TokenCache() (lookup meter.TimingOf, fetched meter.CountOf, waiting func(status string) (done func())) {
	requests := m.counters(authentication+"request_total", "Tokens that were looked up.", "status")
	took := m.histograms(authentication+"request_duration_seconds", "How long it took to look them up.", defaultBuckets, "status")
	fetches := m.counters(authentication+"fetch_total", "Tokens that the API server was asked about.", "status")
	active := m.gauges(authentication+"active_fetch_count", "Requests that wait for the API server's answer.", "status")
	lookup = func(status string, d time.Duration) {
		requests.WithLabelValues(status).Inc()
		took.WithLabelValues(status).Observe(d.Seconds())
	}
	return lookup, incBy(fetches), func(status string) func() { return trackActive(active.WithLabelValues(status)) }
}

// RejectedClients counts work by reason that was rejected because its client was not authorized yet.
func (m *Metrics) RejectedClients() meter.CountOf {
	return incBy(m.counters("swiftlet_server_rejections_total", "Connections and requests of clients that are not authorized, rejected to bound the work for them.", "reason"))
}

// trackActive increments the gauge until done is called.
func trackActive(g prometheus.Gauge) (done func()) {
	g.Inc()
	return g.Dec
}
