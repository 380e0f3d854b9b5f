package server

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/why"
)

// Why describes why pods and the node are not up.
type Why interface {
	Pod(namespace, name string) (why.Report, bool)
	Node() why.NodeReport
}

// WhyView is the Why of a node's steps.
type WhyView struct {
	Steps    *why.Tracker
	Statuses interface {
		Get(types.UID) (v1.PodStatus, bool)
	}
	// Processes lists the processes of a pod.
	Processes func(types.UID) ([]why.Process, error)
	// Object returns the Node.
	Object func() *v1.Node
	Clock  clock.PassiveClock
}

// Pod describes a pod that has a worker.
func (v WhyView) Pod(namespace, name string) (why.Report, bool) {
	uid, found := v.Steps.Find(namespace, name)
	if !found {
		return why.Report{}, false
	}
	var status *v1.PodStatus
	if s, known := v.Statuses.Get(uid); known {
		status = &s
	}
	return v.Report(uid, status)
}

// Report describes a pod with the given status.
func (v WhyView) Report(uid types.UID, status *v1.PodStatus) (why.Report, bool) {
	report, found := v.Steps.Report(uid, status, v.Clock.Now())
	if found && report.AwaitsProcesses() {
		if all, err := v.Processes(uid); err == nil { // else the sentence does without
			report.NameProcesses(all)
		}
	}
	return report, found
}

// Node describes the node.
func (v WhyView) Node() why.NodeReport {
	return v.Steps.Node(v.Object(), v.Statuses.Get, v.Clock.Now())
}

func (s *Server) whyPod(w http.ResponseWriter, r *http.Request) {
	report, found := s.deps.Why.Pod(r.PathValue("namespace"), r.PathValue("pod"))
	if !found {
		fail(w, http.StatusNotFound, "pod not found")
		return
	}
	s.writeReport(w, r, report)
}

func (s *Server) whyNode(w http.ResponseWriter, r *http.Request) {
	s.writeReport(w, r, s.deps.Why.Node())
}

// writeReport responds with text for people, or with JSON if the query asks for it.
func (s *Server) writeReport(w http.ResponseWriter, r *http.Request, report interface {
	Write(io.Writer, *time.Location) error
}) {
	if r.URL.Query().Get("output") == "json" {
		text, err := json.Marshal(report)
		if err != nil {
			fail(w, http.StatusInternalServerError, err.Error())
			return
		}
		s.write(w, text)
		return
	}
	var text bytes.Buffer
	if err := report.Write(&text, time.UTC); err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if _, err := w.Write(text.Bytes()); err != nil {
		s.deps.Log.Debug("write response: failed", "err", err)
	}
}
