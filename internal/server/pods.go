package server

import (
	"encoding/json"
	"net/http"

	v1 "k8s.io/api/core/v1"
)

func (s *Server) pods(w http.ResponseWriter, _ *http.Request) {
	s.writePods(w, s.deps.Pods.Pods())
}

func (s *Server) runningPods(w http.ResponseWriter, r *http.Request) {
	pods, err := s.deps.Pods.RunningPods(r.Context())
	if err != nil {
		s.deps.Log.Error("list running pods: failed", "err", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.writePods(w, pods)
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
