package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strings"
)

const pprofPath = "/debug/pprof/"

// maxVerbosity is more than any verbosity is long.
const maxVerbosity = 64

// debugRoutes look into the agent and its machine, each with its own switch.
func (s *Server) debugRoutes() []route {
	kc := s.cfg.Kubelet
	logs := route{"/logs/", nil, disabled("logs endpoint is disabled.")}
	if *kc.EnableSystemLogHandler {
		logs = route{"/logs/", get, s.systemLogs().ServeHTTP}
	}
	profiles := route{pprofPath, nil, disabled("profiling endpoint is disabled.")}
	if *kc.EnableProfilingHandler {
		profiles = route{pprofPath, get, profile}
	}
	flags := route{"/debug/flags/v", nil, disabled("flags endpoint is disabled.")}
	if *kc.EnableDebugFlagsHandler {
		flags.handler = s.verbosity
	}
	return []route{logs, profiles, flags}
}

func disabled(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, http.StatusMethodNotAllowed) }
}

func profile(w http.ResponseWriter, r *http.Request) {
	switch strings.TrimPrefix(r.URL.Path, pprofPath) {
	case "profile":
		pprof.Profile(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	case "cmdline":
		pprof.Cmdline(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
}

// verbosity changes how much is logged.
func (s *Server) verbosity(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut || s.deps.SetVerbosity == nil {
		http.Error(w, "unsupported http method", http.StatusNotAcceptable)
		return
	}
	level, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxVerbosity))
	if err != nil {
		http.Error(w, "error reading request body: "+err.Error(), http.StatusBadRequest)
		return
	}
	if err := s.deps.SetVerbosity(string(level)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "successfully set klog.logging.verbosity to %s\n", level)
}
