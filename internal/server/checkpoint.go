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

// checkpoint has the runtime write a running container, memory and all, to a file.
func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request) {
	p, ok := s.podOf(r)
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

// checkpointTimeout reads the last timeout given; 0 is the runtime's own.
func checkpointTimeout(given []string) (time.Duration, error) {
	if len(given) == 0 {
		return 0, nil
	}
	seconds, err := strconv.ParseInt(given[len(given)-1], 10, 64)
	if err != nil {
		return 0, errors.New("cannot parse value of timeout parameter")
	}
	if longest := int64(longestRequest / time.Second); seconds < 0 || seconds > longest {
		return 0, fmt.Errorf("timeout parameter must be between 0 and %d seconds", longest)
	}
	return time.Duration(seconds) * time.Second, nil
}

func (s *Server) writeCheckpoint(r *http.Request, p *v1.Pod, name string, timeout time.Duration) (path string, err error) {
	c := s.running(p, name)
	if c == nil {
		return "", fmt.Errorf("container %s not found", name)
	}
	// It holds the container's memory, secrets included.
	if err := os.MkdirAll(s.cfg.CheckpointDir, 0o700); err != nil {
		return "", err
	}
	path = filepath.Join(s.cfg.CheckpointDir, fmt.Sprintf("checkpoint-%s-%s-%s.tar", pod.FullName(p), name, s.deps.Clock.Now().Format(time.RFC3339)))
	return path, s.deps.Runtime.Checkpoint(r.Context(), c.ID, path, timeout)
}
