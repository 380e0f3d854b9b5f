package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"swiftlet/internal/meter"
)

// HTTP takes the requests to the node's API as they begin, and returns what ends them.
func (m *Metrics) HTTP() func(readOnly bool, method, path string, longRunning bool) (done func()) {
	labels := []string{"method", "path", "server_type", "long_running"}
	total := m.counters(kubelet+"http_requests_total", "Requests to the node's API.", labels...)
	took := m.histograms(kubelet+"http_requests_duration_seconds", "How long requests to the node's API took.", usual, labels...)
	current := m.gauges(kubelet+"http_inflight_requests", "Requests to the node's API that are being served.", labels...)
	return func(readOnly bool, method, path string, longRunning bool) func() {
		port := "readwrite"
		if readOnly {
			port = "readonly"
		}
		values := []string{method, path, port, strconv.FormatBool(longRunning)}
		began := m.clock.Now()
		total.WithLabelValues(values...).Inc()
		inside := current.WithLabelValues(values...)
		inside.Inc()
		return func() {
			inside.Dec()
			took.WithLabelValues(values...).Observe(m.clock.Since(began).Seconds())
		}
	}
}

// WebSockets counts the streams over WebSockets, by subresource.
func (m *Metrics) WebSockets() meter.CountOf {
	return count(m.counters(kubelet+"websocket_streaming_requests_total", "Streams over WebSockets.", "subresource"))
}

// Certificates takes how long the certificates that clients show are still good for.
func (m *Metrics) Certificates() meter.Timing {
	return seconds(m.histogram("apiserver_client_certificate_expiration_seconds", "How long the certificates that clients show are still good for.", lifetimes))
}

// Reviews takes the questions to the API server about who somebody is and what they may
// do, by status code.
func (m *Metrics) Reviews() (who, may meter.TimingOf) {
	of := func(name, what string) meter.TimingOf {
		total := m.counters("apiserver_delegated_"+name+"_request_total", "Questions to the API server "+what+".", "code")
		took := m.histograms("apiserver_delegated_"+name+"_request_duration_seconds", "How long it took to answer them.", reviews, "code")
		return func(code string, d time.Duration) {
			total.WithLabelValues(code).Inc()
			took.WithLabelValues(code).Observe(d.Seconds())
		}
	}
	return of("authn", "about whom a token belongs to"), of("authz", "about what somebody may do")
}

// Tokens measures the memory of the API server's answers about tokens.
func (m *Metrics) Tokens() (asked meter.TimingOf, fetched meter.CountOf, waiting func(how string) (done func())) {
	requests := m.counters(authentication+"request_total", "Tokens that were looked up.", "status")
	took := m.histograms(authentication+"request_duration_seconds", "How long it took to look them up.", usual, "status")
	fetches := m.counters(authentication+"fetch_total", "Tokens that the API server was asked about.", "status")
	active := m.gauges(authentication+"active_fetch_count", "Requests that wait for the API server's answer.", "status")
	asked = func(status string, d time.Duration) {
		requests.WithLabelValues(status).Inc()
		took.WithLabelValues(status).Observe(d.Seconds())
	}
	return asked, count(fetches), func(how string) func() { return during(active.WithLabelValues(how)) }
}

// during counts one until what it returns is called.
func during(g prometheus.Gauge) (done func()) {
	g.Inc()
	return g.Dec
}
