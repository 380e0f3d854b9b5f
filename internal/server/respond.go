package server

import (
	"io"
	"net/http"
)

// write responds with JSON.
func (s *Server) write(w http.ResponseWriter, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(text); err != nil {
		s.deps.Log.Debug("write response: failed", "err", err)
	}
}

// fail responds with an error as plain text.
func fail(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text) // it fails only when the client has disconnected
}
