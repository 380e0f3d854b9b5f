package server

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"swiftlet/internal/pod"
)

// portForward connects the client to ports of a pod.
func (s *Server) portForward(w http.ResponseWriter, r *http.Request) {
	tunnel := s.cfg.WebSockets && wsstream.IsWebSocketRequestWithTunnelingProtocol(r)
	var ports []int32
	if wsstream.IsWebSocketRequest(r) && !tunnel {
		// The oldest protocol names all ports in the query; the others name one for each stream.
		var err error
		if ports, err = parsePorts(r.URL.Query()); err != nil {
			fail(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	p, ok := s.requestedPod(r)
	if !ok {
		fail(w, http.StatusNotFound, "pod does not exist")
		return
	}
	if uid := r.PathValue("uid"); uid != "" && uid != string(p.UID) {
		fail(w, http.StatusNotFound, "pod not found")
		return
	}
	sandbox := s.deps.Containers.Observed(p.UID).Sandbox()
	if sandbox == nil || !sandbox.Ready {
		fail(w, http.StatusInternalServerError, fmt.Sprintf("pod not found (%q)", pod.FullName(p)))
		return
	}
	location, err := s.deps.Runtime.PortForward(r.Context(), &runtimeapi.PortForwardRequest{PodSandboxId: sandbox.ID, Port: ports})
	if tunnel {
		s.tunnel(w, r, location, err)
		return
	}
	s.upgrade(w, r, location, err)
}

// parsePorts parses the port parameters, each of which may list several ports.
func parsePorts(query url.Values) ([]int32, error) {
	values := query["port"]
	if len(values) == 0 {
		return nil, fmt.Errorf("query parameter %q is required", "port")
	}
	var ports []int32
	for _, list := range values {
		if list == "" {
			return nil, fmt.Errorf("query parameter %q cannot be empty", "port")
		}
		for text := range strings.SplitSeq(list, ",") {
			port, err := strconv.ParseUint(text, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("unable to parse %q as a port: %w", list, err)
			}
			if port == 0 {
				return nil, fmt.Errorf("port %q must be > 0", list)
			}
			ports = append(ports, int32(port))
		}
	}
	return ports, nil
}
