package metrics

import "github.com/prometheus/client_golang/prometheus"

// SLIs are the few figures of /metrics/slis, by which people judge whether a node is up: what
// came of each health check that somebody asked for. They are gathered apart from the others,
// so that they can be asked for often.
type SLIs struct {
	*prometheus.Registry
	last  *prometheus.GaugeVec
	total *prometheus.CounterVec
}

// NewSLIs makes figures without a check. started is a collector that tells when the process
// began, which is when its counters did.
func NewSLIs(started prometheus.Collector) *SLIs {
	s := &SLIs{
		Registry: prometheus.NewRegistry(),
		last:     prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kubernetes_healthcheck", Help: "Whether a health check last succeeded."}, []string{"name", "type"}),
		total:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubernetes_healthchecks_total", Help: "What came of health checks."}, []string{"name", "type", "status"}),
	}
	s.MustRegister(s.last, s.total, started)
	return s
}

// Checked notes what came of a health check that was asked for as part of an endpoint, such
// as healthz.
func (s *SLIs) Checked(name, endpoint string, err error) {
	value, status := 1.0, "success"
	if err != nil {
		value, status = 0, "error"
	}
	s.last.WithLabelValues(name, endpoint).Set(value)
	s.total.WithLabelValues(name, endpoint, status).Inc()
}

// Reset forgets all checks.
func (s *SLIs) Reset() {
	s.last.Reset()
	s.total.Reset()
}
