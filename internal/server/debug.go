package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strings"
)

const pprofPath = "/debug/pprof/"

// maxVerbosityBytes is the longest accepted body of /debug/flags/v.
const maxVerbosityBytes = 64

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

// verbosity changes the log verbosity.
func (s *Server) verbosity(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut || s.deps.SetVerbosity == nil {
		http.Error(w, "unsupported http method", http.StatusNotAcceptable)
		return
	}
	level, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxVerbosityBytes))
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
