package server

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Stats tells what is used. Its methods may be called at any time.
type Stats interface {
	Summary(context.Context) (*statsapi.Summary, error)
	// UsageSummary is the part of Summary that tells of CPU, memory and swap.
	UsageSummary(context.Context) (*statsapi.Summary, error)
	// WriteCadvisor and WriteResource write the Prometheus text format; trouble with the
	// figures themselves is told among them.
	WriteCadvisor(context.Context, io.Writer) error
	WriteResource(context.Context, io.Writer) error
}

func (s *Server) summary(w http.ResponseWriter, r *http.Request) {
	ask := s.deps.Stats.Summary
	if r.URL.Query().Get("only_cpu_and_memory") == "true" {
		ask = s.deps.Stats.UsageSummary
	}
	summary, err := ask(r.Context())
	var text []byte
	if err == nil {
		text, err = json.Marshal(summary)
	}
	if err != nil {
		s.deps.Log.Error("summary of statistics", "err", err)
		http.Error(w, "Internal Error: "+err.Error(), http.StatusInternalServerError)
		return
	}
	s.write(w, text)
}

// metricsText serves what write writes, packed where the client can unpack it.
func (s *Server) metricsText(write func(context.Context, io.Writer) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		var err error
		if acceptsGzip(r) {
			w.Header().Set("Content-Encoding", "gzip")
			err = writePacked(w, func(out io.Writer) error { return write(r.Context(), out) })
		} else {
			err = write(r.Context(), w)
		}
		if err != nil {
			s.deps.Log.Debug("answer was not taken", "err", err)
		}
	}
}

func acceptsGzip(r *http.Request) bool {
	for _, offer := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(offer), ";")
		if strings.TrimSpace(name) == "gzip" && strings.ReplaceAll(quality, " ", "") != "q=0" {
			return true
		}
	}
	return false
}

// packers are kept for the next scrape: each holds a good part of a megabyte.
var packers = sync.Pool{New: func() any {
	packer, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil { // the level is one that exists
		panic(err)
	}
	return packer
}}

func writePacked(out io.Writer, write func(io.Writer) error) error {
	packer := packers.Get().(*gzip.Writer)
	defer packers.Put(packer)
	packer.Reset(out)
	if err := write(packer); err != nil {
		return err
	}
	return packer.Close()
}
