package server

import (
	"encoding/json"
	"net/http"
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/config"
)

// apiRoutes are the paths of the HTTPS API. All of them stand behind the guard.
func (s *Server) apiRoutes() []route {
	if !*s.cfg.Kubelet.EnableDebuggingHandlers {
		return slices.Concat(s.openRoutes(), disabledRoutes())
	}
	routes := slices.Concat(s.openRoutes(), s.podRoutes(), s.streamRoutes(), s.debugRoutes())
	return append(routes, s.zPageRoutes(routes)...)
}

// readOnlyRoutes are the paths of the read-only port, before which there is no guard.
func (s *Server) readOnlyRoutes() []route { return slices.Concat(s.openRoutes(), disabledRoutes()) }

// openRoutes are the paths that every port but the health check's has.
func (s *Server) openRoutes() []route {
	health := s.healthRoutes(append([]Check{ping, logCheck}, s.deps.Checks...))
	return slices.Concat(health, s.statsRoutes(), []route{
		{"/pods", get, s.pods},
		{"/pods/{$}", get, s.pods},
		{"/metrics", nil, s.gathered(s.deps.Metrics)},
		{"/metrics/slis", nil, s.slis},
	})
}

// podRoutes show what the node holds beyond /pods.
func (s *Server) podRoutes() []route {
	routes := []route{
		{"/runningpods/{$}", get, s.runningPods},
		{"/configz", nil, s.configz},
	}
	if s.cfg.AllocatedPods {
		routes = append(routes,
			route{"/allocatedPods", get, s.allocatedPods},
			route{"/allocatedPods/{$}", get, s.allocatedPods},
			route{"/allocatedPods/{namespace}/{pod}", get, s.allocatedPod},
			route{"/allocatedPods/{namespace}/{pod}/{uid}", get, s.allocatedPod})
	}
	if s.cfg.Checkpoints {
		routes = append(routes, route{"/checkpoint/{namespace}/{pod}/{container}", post, s.checkpoint})
	}
	return routes
}

// streamRoutes are the ways into containers.
func (s *Server) streamRoutes() []route {
	return []route{
		{"/containerLogs/{namespace}/{pod}/{container}", get, s.containerLogs},
		{"/exec/{namespace}/{pod}/{container}", getOrPost, s.exec},
		{"/exec/{namespace}/{pod}/{uid}/{container}", getOrPost, s.exec},
		{"/attach/{namespace}/{pod}/{container}", getOrPost, s.attach},
		{"/attach/{namespace}/{pod}/{uid}/{container}", getOrPost, s.attach},
		{"/portForward/{namespace}/{pod}", getOrPost, s.portForward},
		{"/portForward/{namespace}/{pod}/{uid}", getOrPost, s.portForward},
		{"/run/{namespace}/{pod}/{container}", post, s.run},
		{"/run/{namespace}/{pod}/{uid}/{container}", post, s.run},
	}
}

// disabledPaths let one see into pods and act in them; enableDebuggingHandlers is their
// switch. They say so where they are off; other paths are just not there.
var disabledPaths = []string{"/run/", "/exec/", "/attach/", "/portForward/", "/containerLogs/", "/runningpods/", "/debug/pprof/", "/logs/"}

func disabledRoutes() []route {
	var routes []route
	for _, path := range disabledPaths {
		routes = append(routes, route{path, nil, disabled("Debug endpoints are disabled.")})
	}
	return routes
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
