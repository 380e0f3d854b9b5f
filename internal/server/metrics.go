package server

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// SLIs are told what came of health checks, and show it.
type SLIs interface {
	prometheus.Gatherer
	// Checked takes a check that was asked for as part of an endpoint, such as healthz.
	Checked(name, endpoint string, err error)
	Reset()
}

// gathered serves what was measured.
func (s *Server) gathered(from prometheus.Gatherer) http.HandlerFunc {
	return promhttp.HandlerFor(from, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, // one bad collector must not hide the others
		ErrorLog:      metricsLog{s.deps.Log},
	}).ServeHTTP
}

// slis serves what came of health checks. A DELETE has them begin anew, as clients know it.
func (s *Server) slis(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodDelete {
		s.deps.SLIs.Reset()
		fmt.Fprint(w, "metrics reset\n")
		return
	}
	s.gathered(s.deps.SLIs)(w, r)
}

// metricsLog lets the metrics library log through ours.
type metricsLog struct{ log *slog.Logger }

func (l metricsLog) Println(args ...any) { l.log.Error("gather metrics", "err", fmt.Sprint(args...)) }
