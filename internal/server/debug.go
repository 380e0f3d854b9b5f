package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"runtime"
	"strings"
)

const pprofPath = "/debug/pprof/"

// maxVerbosity is more than any verbosity is long.
const maxVerbosity = 64

// installDebug adds the paths that look into the agent itself, each with its own switch.
func (s *Server) installDebug(routes *http.ServeMux) {
	kc := s.cfg.Kubelet
	if *kc.EnableSystemLogHandler {
		routes.Handle("GET /logs/", s.systemLogs())
	} else {
		routes.HandleFunc("/logs/", disabled("logs endpoint is disabled."))
	}
	if *kc.EnableProfilingHandler {
		routes.HandleFunc("GET "+pprofPath, profile)
		if kc.EnableContentionProfiling {
			runtime.SetBlockProfileRate(1)
		}
	} else {
		routes.HandleFunc(pprofPath, disabled("profiling endpoint is disabled."))
	}
	if *kc.EnableDebugFlagsHandler {
		routes.HandleFunc("/debug/flags/v", s.verbosity)
	} else {
		routes.HandleFunc("/debug/flags/v", disabled("flags endpoint is disabled."))
	}
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
