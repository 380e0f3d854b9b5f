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

// Stats reads resource usage. Its methods are safe for concurrent use.
type Stats interface {
	Summary(context.Context) (*statsapi.Summary, error)
	// UsageSummary is Summary with CPU, memory and swap only.
	UsageSummary(context.Context) (*statsapi.Summary, error)
	// WriteCadvisor and WriteResource write the Prometheus text format. They report failures
	// to read stats as metrics and return only errors of the writer.
	WriteCadvisor(context.Context, io.Writer) error
	WriteResource(context.Context, io.Writer) error
}

func (s *Server) summary(w http.ResponseWriter, r *http.Request) {
	read := s.deps.Stats.Summary
	if r.URL.Query().Get("only_cpu_and_memory") == "true" {
		read = s.deps.Stats.UsageSummary
	}
	summary, err := read(r.Context())
	var text []byte
	if err == nil {
		text, err = json.Marshal(summary)
	}
	if err != nil {
		s.deps.Log.Error("read stats summary: failed", "err", err)
		http.Error(w, "Internal Error: "+err.Error(), http.StatusInternalServerError)
		return
	}
	s.write(w, text)
}

// metricsText serves what write writes, with gzip if the client accepts it.
func (s *Server) metricsText(write func(context.Context, io.Writer) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		var err error
		if acceptsGzip(r) {
			w.Header().Set("Content-Encoding", "gzip")
			err = writeGzip(w, func(out io.Writer) error { return write(r.Context(), out) })
		} else {
			err = write(r.Context(), w)
		}
		if err != nil {
			s.deps.Log.Debug("write response: failed", "err", err)
		}
	}
}

func acceptsGzip(r *http.Request) bool {
	for _, encoding := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(encoding), ";")
		if strings.TrimSpace(name) == "gzip" && strings.ReplaceAll(quality, " ", "") != "q=0" {
			return true
		}
	}
	return false
}

// gzipWriters are reused between scrapes, because each allocates several hundred kilobytes.
var gzipWriters = sync.Pool{New: func() any {
	writer, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil { // only an invalid level fails
		panic(err)
	}
	return writer
}}

func writeGzip(out io.Writer, write func(io.Writer) error) error {
	writer := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(writer)
	writer.Reset(out)
	if err := write(writer); err != nil {
		return err
	}
	return writer.Close()
}
