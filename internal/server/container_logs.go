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

// containerLogs serves the log of a container. With ?follow it sends new lines as they appear.
func (s *Server) containerLogs(w http.ResponseWriter, r *http.Request) {
	query, err := parseLogQuery(r.URL.Query())
	switch {
	case errors.Is(err, errOptions):
		fail(w, http.StatusUnprocessableEntity, err.Error())
		return
	case err != nil:
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	p, ok := s.requestedPod(r)
	if !ok {
		fail(w, http.StatusNotFound, fmt.Sprintf("pod %q does not exist", r.PathValue("pod")))
		return
	}
	container := r.PathValue("container")
	if pod.FindContainer(p, container) == nil {
		fail(w, http.StatusNotFound, fmt.Sprintf("container %q not found in pod %q", container, p.Name))
		return
	}
	stream, err := s.logStream(query.Stream)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	id, err := logContainerID(p, container, query.Previous)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	s.sendLog(w, r, p, id, logs.Options{
		Tail:       query.TailLines,
		Limit:      query.LimitBytes,
		Since:      sinceTime(query, s.deps.Clock.Now()),
		Timestamps: query.Timestamps,
		Stream:     stream,
	}, query.Follow)
}

// sendLog sends the log of one container instance. containerID has the form of the pod status.
func (s *Server) sendLog(w http.ResponseWriter, r *http.Request, p *v1.Pod, containerID string, o logs.Options, follow bool) {
	_, id, _ := strings.Cut(containerID, "://")
	var path string
	if observed := s.deps.Containers.Observed(p.UID); observed != nil {
		if i := slices.IndexFunc(observed.Containers, func(c pod.Container) bool { return c.ID == id }); i >= 0 {
			path = observed.Containers[i].LogPath
		}
	}
	if path == "" {
		fail(w, http.StatusBadRequest, "unable to retrieve container logs for "+containerID)
		return
	}
	if follow {
		exited, stop := s.deps.Containers.Exited(p.UID, id)
		defer stop()
		o.Ended = exited
	}
	out := &flushWriter{w: w}
	switch err := s.deps.Logs.Read(r.Context(), path, o, out); {
	case err == nil || errors.Is(err, context.Canceled):
	case !out.started:
		fail(w, http.StatusBadRequest, err.Error())
	default:
		s.deps.Log.Warn("read container log: aborted", pod.RefOf(p).Attr(), "container", id, "err", err)
		panic(http.ErrAbortHandler) // the status is sent, so only this shows that the log is incomplete
	}
}

// flushWriter flushes every write.
type flushWriter struct {
	w       http.ResponseWriter
	started bool // something was written
}

func (f *flushWriter) Write(data []byte) (int, error) {
	if !f.started {
		f.started = true
		f.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		f.w.Header().Set("X-Content-Type-Options", "nosniff") // a pod has written it
	}
	n, err := f.w.Write(data)
	if err != nil {
		return n, err
	}
	return n, http.NewResponseController(f.w).Flush()
}

// logStream returns the requested stream, or the empty one for both.
func (s *Server) logStream(requested *string) (logs.Stream, error) {
	switch {
	case requested == nil || *requested == v1.LogStreamAll:
		return "", nil
	case !s.cfg.SplitLogStreams:
		return "", fmt.Errorf("unable to return the given log stream: %q. Please enable PodLogsQuerySplitStreams feature gate in kubelet", *requested)
	case *requested == v1.LogStreamStdout:
		return logs.Stdout, nil
	}
	return logs.Stderr, nil
}

// logContainerID finds the container instance whose log to send: the running one, or else the
// last that ran, as the pod status shows it.
func logContainerID(p *v1.Pod, container string, previous bool) (id string, err error) {
	status, ok := containerStatus(&p.Status, container)
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
		return "", fmt.Errorf("container %q in pod %q is waiting to start: %s", container, p.Name, waitingMessage(state.Waiting.Reason))
	}
	return "", fmt.Errorf("container %q in pod %q is waiting to start - no logs yet", container, p.Name)
}

func waitingMessage(reason string) string {
	switch reason {
	case "ErrImagePull":
		return "image can't be pulled"
	case "ImagePullBackOff":
		return "trying and failing to pull image"
	}
	return reason
}

func containerStatus(s *v1.PodStatus, container string) (v1.ContainerStatus, bool) {
	for _, list := range [][]v1.ContainerStatus{s.ContainerStatuses, s.InitContainerStatuses, s.EphemeralContainerStatuses} {
		for _, status := range list {
			if status.Name == container {
				return status, true
			}
		}
	}
	return v1.ContainerStatus{}, false
}
