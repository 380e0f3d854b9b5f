package server

import (
	"encoding/json"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/config"
)

// apiRoutes are the paths of the HTTPS API. All of them stand behind the guard.
func (s *Server) apiRoutes() *http.ServeMux {
	routes := s.readOnlyRoutes()
	if *s.cfg.Kubelet.EnableDebuggingHandlers {
		routes.HandleFunc("GET /runningpods/{$}", s.runningPods)
		routes.HandleFunc("GET /configz", s.configz)
		s.installStreams(routes)
		s.installDebug(routes)
	} else {
		installDisabled(routes)
	}
	return routes
}

// readOnlyRoutes are the paths that the read-only port has too.
func (s *Server) readOnlyRoutes() *http.ServeMux {
	routes := http.NewServeMux()
	installHealthz(routes, s.deps.Log, append([]Check{ping, logCheck}, s.deps.Checks...))
	routes.HandleFunc("GET /pods", s.pods)
	routes.HandleFunc("GET /pods/{$}", s.pods)
	routes.Handle("GET /metrics", promhttp.HandlerFor(s.deps.Metrics, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, // one bad collector must not hide the others
		ErrorLog:      metricsLog{s.deps.Log},
	}))
	return routes
}

// installStreams adds the ways into containers.
func (s *Server) installStreams(routes *http.ServeMux) {
	routes.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.containerLogs)
	for path, handler := range map[string]http.HandlerFunc{
		"/exec/{namespace}/{pod}/{container}":         s.exec,
		"/exec/{namespace}/{pod}/{uid}/{container}":   s.exec,
		"/attach/{namespace}/{pod}/{container}":       s.attach,
		"/attach/{namespace}/{pod}/{uid}/{container}": s.attach,
		"/portForward/{namespace}/{pod}":              s.portForward,
		"/portForward/{namespace}/{pod}/{uid}":        s.portForward,
	} {
		routes.HandleFunc("GET "+path, handler)
		routes.HandleFunc("POST "+path, handler)
	}
	routes.HandleFunc("POST /run/{namespace}/{pod}/{container}", s.run)
	routes.HandleFunc("POST /run/{namespace}/{pod}/{uid}/{container}", s.run)
}

// debugPaths let one see into pods and act in them; enableDebuggingHandlers is their switch.
var debugPaths = []string{"/run/", "/exec/", "/attach/", "/portForward/", "/containerLogs/", "/runningpods/", "/debug/pprof/", "/logs/"}

func installDisabled(routes *http.ServeMux) {
	for _, path := range debugPaths {
		routes.HandleFunc(path, disabled("Debug endpoints are disabled."))
	}
}

func (s *Server) pods(w http.ResponseWriter, _ *http.Request) {
	s.writePods(w, s.deps.Pods.Pods())
}

func (s *Server) runningPods(w http.ResponseWriter, r *http.Request) {
	pods, err := s.deps.Pods.RunningPods(r.Context())
	if err != nil {
		s.deps.Log.Error("list running pods", "err", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.writePods(w, pods)
}

func (s *Server) configz(w http.ResponseWriter, _ *http.Request) {
	text, err := config.Configz(s.cfg.Kubelet)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.write(w, text)
}

func (s *Server) writePods(w http.ResponseWriter, pods *v1.PodList) {
	list := *pods
	list.Kind, list.APIVersion = "PodList", "v1"
	text, err := json.Marshal(&list)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.write(w, text)
}

func (s *Server) write(w http.ResponseWriter, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(text); err != nil {
		s.deps.Log.Debug("answer was not taken", "err", err)
	}
}
