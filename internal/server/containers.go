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

// Containers finds pods and their containers. Its methods are safe for concurrent use.
type Containers interface {
	// Pod finds a desired pod, with its status.
	Pod(namespace, name string) (*v1.Pod, bool)
	// Observed returns the state of a pod in the runtime, or nil.
	Observed(uid types.UID) *pod.Observed
	// Exited returns a channel that is closed once the container does not run. The caller
	// must call stop to release the channel.
	Exited(uid types.UID, containerID string) (exited <-chan struct{}, stop func())
}

// Logs reads log files of containers; logs.Reader implements it.
type Logs interface {
	Read(ctx context.Context, path string, o logs.Options, w io.Writer) error
}

// Runtime runs commands and opens streams; cri.Client implements it. Exec, Attach and
// PortForward return the URL at which the runtime serves the stream.
type Runtime interface {
	Exec(ctx context.Context, request *runtimeapi.ExecRequest) (string, error)
	Attach(ctx context.Context, request *runtimeapi.AttachRequest) (string, error)
	PortForward(ctx context.Context, request *runtimeapi.PortForwardRequest) (string, error)
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (cri.ExecResult, error)
	Checkpoint(ctx context.Context, id, path string, timeout time.Duration) error
}

// requestedPod finds the pod that the path names.
func (s *Server) requestedPod(r *http.Request) (*v1.Pod, bool) {
	return s.deps.Containers.Pod(r.PathValue("namespace"), r.PathValue("pod"))
}

// runningContainer finds the running container of that name, or returns nil.
func (s *Server) runningContainer(p *v1.Pod, name string) *pod.Container {
	for _, c := range s.deps.Containers.Observed(p.UID).Instances(name) {
		if c.State == pod.Running {
			return &c
		}
	}
	return nil
}
