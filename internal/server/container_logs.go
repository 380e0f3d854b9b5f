package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/logs"
	"swiftlet/internal/pod"
)

// containerLogs serves a container's log, as it is or as it grows.
func (s *Server) containerLogs(w http.ResponseWriter, r *http.Request) {
	wanted, err := parseLogQuery(r.URL.Query())
	switch {
	case errors.Is(err, errOptions):
		fail(w, http.StatusUnprocessableEntity, err.Error())
		return
	case err != nil:
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	p, ok := s.podOf(r)
	if !ok {
		fail(w, http.StatusNotFound, fmt.Sprintf("pod %q does not exist", r.PathValue("pod")))
		return
	}
	container := r.PathValue("container")
	if pod.FindContainer(p, container) == nil {
		fail(w, http.StatusNotFound, fmt.Sprintf("container %q not found in pod %q", container, p.Name))
		return
	}
	stream, err := s.logStream(wanted.Stream)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	id, err := logOwner(p, container, wanted.Previous)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	s.sendLog(w, r, p, id, logs.Options{
		Tail:       wanted.TailLines,
		Limit:      wanted.LimitBytes,
		Since:      sinceOf(wanted, s.deps.Clock.Now()),
		Timestamps: wanted.Timestamps,
		Stream:     stream,
	}, wanted.Follow)
}

// sendLog sends the log of the container instance with an id as pod status shows it.
func (s *Server) sendLog(w http.ResponseWriter, r *http.Request, p *v1.Pod, fullID string, o logs.Options, follow bool) {
	_, id, _ := strings.Cut(fullID, "://")
	var path string
	if seen := s.deps.Containers.Observed(p.UID); seen != nil {
		if i := slices.IndexFunc(seen.Containers, func(c pod.Container) bool { return c.ID == id }); i >= 0 {
			path = seen.Containers[i].LogPath
		}
	}
	if path == "" {
		fail(w, http.StatusBadRequest, "unable to retrieve container logs for "+fullID)
		return
	}
	if follow {
		ended, forget := s.deps.Containers.Ended(p.UID, id)
		defer forget()
		o.Ended = ended
	}
	out := &flushing{w: w}
	switch err := s.deps.Logs.Read(r.Context(), path, o, out); {
	case err == nil || errors.Is(err, context.Canceled):
	case !out.begun:
		fail(w, http.StatusBadRequest, err.Error())
	default:
		s.deps.Log.Warn("log was cut off", "pod", pod.RefOf(p), "container", id, "err", err)
		panic(http.ErrAbortHandler) // the only way left to say that this is not all
	}
}

// flushing sends what is written at once.
type flushing struct {
	w     http.ResponseWriter
	begun bool
}

func (f *flushing) Write(data []byte) (int, error) {
	if !f.begun {
		f.begun = true
		f.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	n, err := f.w.Write(data)
	if err != nil {
		return n, err
	}
	return n, http.NewResponseController(f.w).Flush()
}

// logStream is the one stream that was asked for, empty for both.
func (s *Server) logStream(wanted *string) (logs.Stream, error) {
	switch {
	case wanted == nil || *wanted == v1.LogStreamAll:
		return "", nil
	case !s.cfg.SplitLogStreams:
		return "", fmt.Errorf("unable to return the given log stream: %q. Please enable PodLogsQuerySplitStreams feature gate in kubelet", *wanted)
	case *wanted == v1.LogStreamStdout:
		return logs.Stdout, nil
	}
	return logs.Stderr, nil
}

// logOwner finds, in the pod's status, the instance of a container whose log to show: the
// one that runs, or else the last that did.
func logOwner(p *v1.Pod, container string, previous bool) (id string, err error) {
	status, ok := statusOf(&p.Status, container)
	if !ok {
		return "", fmt.Errorf("container %q in pod %q is not available", container, p.Name)
	}
	state, last := status.State, ""
	if t := status.LastTerminationState.Terminated; t != nil {
		last = t.ContainerID
	}
	switch {
	case previous && last == "":
		return "", fmt.Errorf("previous terminated container %q in pod %q not found", container, p.Name)
	case previous:
		return last, nil
	case state.Running != nil:
		return status.ContainerID, nil
	case state.Terminated != nil && state.Terminated.ContainerID != "":
		return state.Terminated.ContainerID, nil
	case last != "":
		return last, nil
	case state.Terminated != nil || status.LastTerminationState.Terminated != nil:
		return "", fmt.Errorf("container %q in pod %q is terminated", container, p.Name)
	case state.Waiting != nil:
		return "", fmt.Errorf("container %q in pod %q is waiting to start: %s", container, p.Name, whyWaiting(state.Waiting.Reason))
	}
	return "", fmt.Errorf("container %q in pod %q is waiting to start - no logs yet", container, p.Name)
}

func whyWaiting(reason string) string {
	switch reason {
	case "ErrImagePull":
		return "image can't be pulled"
	case "ImagePullBackOff":
		return "trying and failing to pull image"
	}
	return reason
}

func statusOf(s *v1.PodStatus, container string) (v1.ContainerStatus, bool) {
	for _, list := range [][]v1.ContainerStatus{s.ContainerStatuses, s.InitContainerStatuses, s.EphemeralContainerStatuses} {
		for _, status := range list {
			if status.Name == container {
				return status, true
			}
		}
	}
	return v1.ContainerStatus{}, false
}
