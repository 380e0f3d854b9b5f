package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
)

// streamOptions are the streams that a client opens to a process.
type streamOptions struct{ stdin, stdout, stderr, tty bool }

// parseStreamOptions parses the query. A terminal has no separate stderr.
func parseStreamOptions(r *http.Request) (streamOptions, error) {
	isOne := func(name string) bool { return r.FormValue(name) == "1" }
	o := streamOptions{stdin: isOne("input"), stdout: isOne("output"), stderr: isOne("error"), tty: isOne("tty")}
	if o.tty {
		o.stderr = false
	}
	if !o.stdin && !o.stdout && !o.stderr {
		return o, errors.New("you must specify at least 1 of stdin, stdout, stderr")
	}
	return o, nil
}

// exec starts a command in a container and connects the client to it.
func (s *Server) exec(w http.ResponseWriter, r *http.Request) {
	o, err := parseStreamOptions(r)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	p, ok := s.requestedPod(r)
	if !ok {
		fail(w, http.StatusNotFound, "pod does not exist")
		return
	}
	c := s.runningContainer(p, r.PathValue("container"))
	if c == nil {
		fail(w, http.StatusInternalServerError, fmt.Sprintf("container not found (%q)", r.PathValue("container")))
		return
	}
	location, err := s.deps.Runtime.Exec(r.Context(), &runtimeapi.ExecRequest{
		ContainerId: c.ID, Cmd: r.URL.Query()["command"],
		Stdin: o.stdin, Stdout: o.stdout, Stderr: o.stderr, Tty: o.tty,
	})
	s.connect(w, r, location, err, o)
}

// attach connects the client to the main process of a container.
func (s *Server) attach(w http.ResponseWriter, r *http.Request) {
	o, err := parseStreamOptions(r)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	p, ok := s.requestedPod(r)
	if !ok {
		fail(w, http.StatusNotFound, "pod does not exist")
		return
	}
	name := r.PathValue("container")
	c, spec := s.runningContainer(p, name), pod.FindContainer(p, name)
	if c == nil || spec == nil {
		fail(w, http.StatusInternalServerError, fmt.Sprintf("container %s not found in pod %s", name, pod.FullName(p)))
		return
	}
	if uid := r.PathValue("uid"); uid != "" && uid != string(p.UID) {
		fail(w, http.StatusInternalServerError, fmt.Sprintf("pod %s not found", pod.FullName(p)))
		return
	}
	// A process has a terminal if its container was started with one.
	request := &runtimeapi.AttachRequest{ContainerId: c.ID, Stdin: o.stdin, Stdout: o.stdout, Stderr: o.stderr, Tty: spec.TTY}
	if request.Tty {
		request.Stderr = false
	}
	location, err := s.deps.Runtime.Attach(r.Context(), request)
	s.connect(w, r, location, err, o)
}

// run runs a command and responds with its output.
func (s *Server) run(w http.ResponseWriter, r *http.Request) {
	p, ok := s.requestedPod(r)
	if !ok {
		fail(w, http.StatusNotFound, "pod does not exist")
		return
	}
	output, err := s.runCommand(r, p)
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	s.write(w, output)
}

func (s *Server) runCommand(r *http.Request, p *v1.Pod) ([]byte, error) {
	c := s.runningContainer(p, r.PathValue("container"))
	if c == nil {
		return nil, fmt.Errorf("container not found (%q)", r.PathValue("container"))
	}
	command := strings.Split(r.FormValue("cmd"), " ")
	result, err := s.deps.Runtime.ExecSync(r.Context(), c.ID, command, 0)
	if err != nil {
		return nil, err
	}
	if result.ExitCode != 0 {
		return nil, fmt.Errorf("command '%s' exited with %d: %s", strings.Join(command, " "), result.ExitCode, result.Stderr)
	}
	return slices.Concat(result.Stdout, result.Stderr), nil
}
