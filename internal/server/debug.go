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
