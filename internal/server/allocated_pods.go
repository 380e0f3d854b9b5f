package server

import (
	"encoding/json"
	"net/http"

	v1 "k8s.io/api/core/v1"
)

// allocatedPods lists the pods with the resources they were given. What is given is what
// the spec says; statuses are left out.
func (s *Server) allocatedPods(w http.ResponseWriter, _ *http.Request) {
	list := &v1.PodList{}
	for _, p := range s.deps.Pods.Pods().Items {
		p.Status = v1.PodStatus{}
		list.Items = append(list.Items, p)
	}
	s.writePods(w, list)
}

// allocatedPod shows one of them.
func (s *Server) allocatedPod(w http.ResponseWriter, r *http.Request) {
	p, ok := s.podOf(r)
	if uid := r.PathValue("uid"); !ok || uid != "" && uid != string(p.UID) {
		fail(w, http.StatusNotFound, "pod not found")
		return
	}
	shown := *p
	shown.Kind, shown.APIVersion, shown.Status = "Pod", "v1", v1.PodStatus{}
	text, err := json.Marshal(&shown)
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	s.write(w, text)
}
