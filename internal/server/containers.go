package server

import (
	"context"
	"io"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cri"
	"swiftlet/internal/logs"
	"swiftlet/internal/pod"
)

// Containers leads from names to containers. Its methods may be called at any time.
type Containers interface {
	// Pod is a pod that is wanted here, with its status.
	Pod(namespace, name string) (*v1.Pod, bool)
	// Observed is what the runtime holds of a pod, nil for nothing.
	Observed(uid types.UID) *pod.Observed
	// Ended returns a channel that is closed once the container does not run. The caller
	// calls forget when it has lost interest.
	Ended(uid types.UID, containerID string) (ended <-chan struct{}, forget func())
}

// Logs reads a container's log file; logs.Reader is one.
type Logs interface {
	Read(ctx context.Context, path string, o logs.Options, w io.Writer) error
}

// Runtime opens ways into containers; cri.Client is one. Exec, Attach and PortForward
// return the URL where the runtime itself serves the stream.
type Runtime interface {
	Exec(ctx context.Context, request *runtimeapi.ExecRequest) (string, error)
	Attach(ctx context.Context, request *runtimeapi.AttachRequest) (string, error)
	PortForward(ctx context.Context, request *runtimeapi.PortForwardRequest) (string, error)
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (cri.ExecResult, error)
	Checkpoint(ctx context.Context, id, path string, timeout time.Duration) error
}

// podOf finds the pod that the path names.
func (s *Server) podOf(r *http.Request) (*v1.Pod, bool) {
	return s.deps.Containers.Pod(r.PathValue("namespace"), r.PathValue("pod"))
}

// running finds the container of a pod that runs under a name, nil if none does.
func (s *Server) running(p *v1.Pod, name string) *pod.Container {
	for _, c := range s.deps.Containers.Observed(p.UID).Instances(name) {
		if c.State == pod.Running {
			return &c
		}
	}
	return nil
}
