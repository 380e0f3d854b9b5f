package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
)

// checkpoint makes the runtime write a running container, with its memory, to a file.
func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request) {
	p, ok := s.requestedPod(r)
	if !ok {
		fail(w, http.StatusNotFound, "pod does not exist")
		return
	}
	name := r.PathValue("container")
	if pod.FindContainer(p, name) == nil {
		fail(w, http.StatusNotFound, fmt.Sprintf("container %s does not exist", name))
		return
	}
	timeout, err := checkpointTimeout(r.URL.Query()["timeout"])
	if err != nil {
		fail(w, http.StatusNotFound, err.Error())
		return
	}
	path, err := s.writeCheckpoint(r, p, name, timeout)
	if err != nil {
		fail(w, http.StatusInternalServerError, fmt.Sprintf("checkpointing of %s/%s/%s failed (%s)", p.Namespace, p.Name, name, cri.Text(err)))
		return
	}
	text, err := json.Marshal(map[string][]string{"items": {path}})
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	s.write(w, text)
}

// checkpointTimeout parses the last timeout parameter; 0 is the runtime's default.
func checkpointTimeout(values []string) (time.Duration, error) {
	if len(values) == 0 {
		return 0, nil
	}
	seconds, err := strconv.ParseInt(values[len(values)-1], 10, 64)
	if err != nil {
		return 0, errors.New("cannot parse value of timeout parameter")
	}
	if limit := int64(requestTimeout / time.Second); seconds < 0 || seconds > limit {
		return 0, fmt.Errorf("timeout parameter must be between 0 and %d seconds", limit)
	}
	return time.Duration(seconds) * time.Second, nil
}

func (s *Server) writeCheckpoint(r *http.Request, p *v1.Pod, name string, timeout time.Duration) (path string, err error) {
	c := s.runningContainer(p, name)
	if c == nil {
		return "", fmt.Errorf("container %s not found", name)
	}
	// A checkpoint contains the container's memory, which may hold secrets.
	if err := os.MkdirAll(s.cfg.CheckpointDir, 0o700); err != nil {
		return "", err
	}
	path = filepath.Join(s.cfg.CheckpointDir, fmt.Sprintf("checkpoint-%s-%s-%s.tar", pod.FullName(p), name, s.deps.Clock.Now().Format(time.RFC3339)))
	return path, s.deps.Runtime.Checkpoint(r.Context(), c.ID, path, timeout)
}
