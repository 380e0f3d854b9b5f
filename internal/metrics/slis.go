package metrics

import "github.com/prometheus/client_golang/prometheus"

// SLIs are the metrics of /metrics/slis: the results of health checks. They have a registry of
// their own, so that they are cheap to scrape often.
type SLIs struct {
	*prometheus.Registry
	last  *prometheus.GaugeVec
	total *prometheus.CounterVec
}

// NewSLIs returns SLIs without results. started is a collector of the start time of the process,
// at which the counters started.
func NewSLIs(started prometheus.Collector) *SLIs {
	s := &SLIs{
		Registry: prometheus.NewRegistry(),
		last:     prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kubernetes_healthcheck", Help: "Whether a health check last succeeded."}, []string{"name", "type"}),
		total:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubernetes_healthchecks_total", Help: "What came of health checks."}, []string{"name", "type", "status"}),
	}
	s.MustRegister(s.last, s.total, started)
	return s
}

// Checked records the result of a health check of an endpoint, such as healthz.
func (s *SLIs) Checked(name, endpoint string, err error) {
	value, status := 1.0, "success"
	if err != nil {
		value, status = 0, "error"
	}
	s.last.WithLabelValues(name, endpoint).Set(value)
	s.total.WithLabelValues(name, endpoint, status).Inc()
}

// Reset removes all results.
func (s *SLIs) Reset() {
	s.last.Reset()
	s.total.Reset()
}
