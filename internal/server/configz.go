package server

import (
	"net/http"

	"swiftlet/internal/config"
)

func (s *Server) configz(w http.ResponseWriter, _ *http.Request) {
	text, err := config.Configz(s.cfg.Kubelet)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.write(w, text)
}
