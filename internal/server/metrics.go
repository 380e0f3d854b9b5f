package server

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// SLIs record the results of health checks and expose them as metrics.
type SLIs interface {
	prometheus.Gatherer
	// Checked records the result of a check of an endpoint, such as healthz.
	Checked(name, endpoint string, err error)
	Reset()
}

// metricsHandler serves the metrics of a gatherer.
func (s *Server) metricsHandler(gatherer prometheus.Gatherer) http.HandlerFunc {
	return promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, // a failing collector must not hide the others
		ErrorLog:      metricsLog{s.deps.Log},
	}).ServeHTTP
}

// slis serves the metrics of health checks. DELETE resets them.
func (s *Server) slis(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodDelete {
		s.deps.SLIs.Reset()
		fmt.Fprint(w, "metrics reset\n")
		return
	}
	s.metricsHandler(s.deps.SLIs)(w, r)
}

// metricsLog is the promhttp.Logger that writes to the kubelet's log.
type metricsLog struct{ log *slog.Logger }

func (l metricsLog) Println(args ...any) {
	l.log.Error("gather metrics: failed", "err", fmt.Sprint(args...))
}
