package server

import (
	"encoding/json"
	"net/http"

	v1 "k8s.io/api/core/v1"
)

// allocatedPods lists the pods with their allocated resources, which are those of the spec,
// and without status.
func (s *Server) allocatedPods(w http.ResponseWriter, _ *http.Request) {
	list := &v1.PodList{}
	for _, p := range s.deps.Pods.Pods().Items {
		p.Status = v1.PodStatus{}
		list.Items = append(list.Items, p)
	}
	s.writePods(w, list)
}

// allocatedPod returns one such pod.
func (s *Server) allocatedPod(w http.ResponseWriter, r *http.Request) {
	p, ok := s.requestedPod(r)
	if uid := r.PathValue("uid"); !ok || uid != "" && uid != string(p.UID) {
		fail(w, http.StatusNotFound, "pod not found")
		return
	}
	allocated := *p
	allocated.Kind, allocated.APIVersion, allocated.Status = "Pod", "v1", v1.PodStatus{}
	text, err := json.Marshal(&allocated)
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	s.write(w, text)
}
