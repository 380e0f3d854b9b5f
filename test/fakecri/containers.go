package fakecri

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// killedExitCode is the exit code of a stopped container.
const killedExitCode = 137

type container struct {
	status  *runtimeapi.ContainerStatus
	sandbox string
	order   int
}

// OnStart sets a function that is called at each container start. If it returns true, the
// container has exited when StartContainer returns.
func (s *Server) OnStart(f func(*runtimeapi.ContainerStatus) (exitCode int32, exits bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onStart = f
}

// OnExec sets the function that handles ExecSync. Without it every command succeeds.
func (s *Server) OnExec(f func(*runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onExec = f
}

// Exit ends a container's process. It reports whether the container was running.
func (s *Server) Exit(id string, code int32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.containers[id]
	if c == nil || c.status.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return false
	}
	s.exit(c, code)
	return true
}

// Containers lists all containers, oldest first.
func (s *Server) Containers() []*runtimeapi.ContainerStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*runtimeapi.ContainerStatus
	for _, c := range s.sorted() {
		all = append(all, proto.Clone(c.status).(*runtimeapi.ContainerStatus))
	}
	return all
}

// sorted lists containers, oldest first; the caller holds mu.
func (s *Server) sorted() []*container {
	var all []*container
	for _, c := range s.containers {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *container) int { return cmp.Compare(a.order, b.order) })
	return all
}

// exit marks a container as exited, if it is not; the caller holds mu.
func (s *Server) exit(c *container, code int32) {
	if c.status.State == runtimeapi.ContainerState_CONTAINER_EXITED {
		return
	}
	c.status.State = runtimeapi.ContainerState_CONTAINER_EXITED
	c.status.FinishedAt = s.now().UnixNano()
	c.status.ExitCode = code
	c.status.Reason = "Completed"
	if code != 0 {
		c.status.Reason = "Error"
	}
	s.emit(stopped, c.status.Id, c.sandbox)
}

// find returns a container, or the runtime's error; the caller holds mu.
func (s *Server) find(id string) (*container, error) {
	if c := s.containers[id]; c != nil {
		return c, nil
	}
	return nil, status.Errorf(codes.NotFound, "container %q not found", id)
}

// CreateContainer creates a container in a ready sandbox.
func (s *Server) CreateContainer(_ context.Context, r *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sandbox := s.sandboxes[r.PodSandboxId]
	if sandbox == nil {
		return nil, status.Errorf(codes.NotFound, "sandbox %q not found", r.PodSandboxId)
	}
	if sandbox.State != runtimeapi.PodSandboxState_SANDBOX_READY {
		return nil, status.Errorf(codes.Unknown, "sandbox %q is not running", r.PodSandboxId)
	}
	id := s.id("container")
	image := r.Config.GetImage()
	c := &container{sandbox: r.PodSandboxId, order: s.nextID, status: &runtimeapi.ContainerStatus{
		Id:          id,
		Metadata:    r.Config.Metadata,
		State:       runtimeapi.ContainerState_CONTAINER_CREATED,
		CreatedAt:   s.now().UnixNano(),
		Image:       &runtimeapi.ImageSpec{Image: cmp.Or(image.GetUserSpecifiedImage(), image.GetImage())},
		ImageRef:    image.GetImage(),
		ImageId:     image.GetImage(),
		Labels:      r.Config.Labels,
		Annotations: r.Config.Annotations,
		Mounts:      r.Config.Mounts,
		LogPath:     filepath.Join(r.SandboxConfig.GetLogDirectory(), r.Config.LogPath),
		Resources:   &runtimeapi.ContainerResources{Linux: r.Config.GetLinux().GetResources()},
		StopSignal:  r.Config.StopSignal,
	}}
	s.containers[id] = c
	s.emit(created, id, c.sandbox)
	return &runtimeapi.CreateContainerResponse{ContainerId: id}, nil
}

// StartContainer starts a created container. With OnStart it may exit at once.
func (s *Server) StartContainer(_ context.Context, r *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(r.ContainerId)
	if err != nil {
		return nil, err
	}
	if c.status.State != runtimeapi.ContainerState_CONTAINER_CREATED {
		return nil, status.Errorf(codes.Unknown, "container %q is in %s state", r.ContainerId, c.status.State)
	}
	c.status.State = runtimeapi.ContainerState_CONTAINER_RUNNING
	c.status.StartedAt = s.now().UnixNano()
	s.emit(started, r.ContainerId, c.sandbox)
	if s.onStart != nil {
		if code, exits := s.onStart(proto.Clone(c.status).(*runtimeapi.ContainerStatus)); exits {
			s.exit(c, code)
		}
	}
	return &runtimeapi.StartContainerResponse{}, nil
}

// StopContainer stops the container at once and ignores the grace period.
func (s *Server) StopContainer(_ context.Context, r *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(r.ContainerId)
	if err != nil {
		return nil, err
	}
	s.exit(c, killedExitCode)
	return &runtimeapi.StopContainerResponse{}, nil
}

// RemoveContainer removes a container, running or not.
func (s *Server) RemoveContainer(_ context.Context, r *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(r.ContainerId)
	if err != nil {
		return nil, err
	}
	delete(s.containers, r.ContainerId)
	s.emit(deleted, r.ContainerId, c.sandbox)
	return &runtimeapi.RemoveContainerResponse{}, nil
}

// ContainerStatus returns the status of a container.
func (s *Server) ContainerStatus(_ context.Context, r *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(r.ContainerId)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ContainerStatusResponse{Status: proto.Clone(c.status).(*runtimeapi.ContainerStatus)}, nil
}

// ListContainers lists the containers that match the filter.
func (s *Server) ListContainers(_ context.Context, r *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := &runtimeapi.ListContainersResponse{}
	f := r.GetFilter()
	for _, c := range s.sorted() {
		if f.GetId() != "" && f.GetId() != c.status.Id || f.GetPodSandboxId() != "" && f.GetPodSandboxId() != c.sandbox ||
			f.GetState() != nil && f.GetState().State != c.status.State || !matchesLabels(c.status.Labels, f.GetLabelSelector()) {
			continue
		}
		answer.Containers = append(answer.Containers, &runtimeapi.Container{
			Id: c.status.Id, PodSandboxId: c.sandbox, Metadata: c.status.Metadata, Image: c.status.Image, ImageRef: c.status.ImageRef,
			State: c.status.State, CreatedAt: c.status.CreatedAt, Labels: c.status.Labels, Annotations: c.status.Annotations,
		})
	}
	return answer, nil
}

// UpdateContainerResources replaces the container's limits.
func (s *Server) UpdateContainerResources(_ context.Context, r *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(r.ContainerId)
	if err != nil {
		return nil, err
	}
	c.status.Resources = &runtimeapi.ContainerResources{Linux: r.Linux}
	return &runtimeapi.UpdateContainerResourcesResponse{}, nil
}

// ReopenContainerLog does nothing: the fake writes no logs.
func (s *Server) ReopenContainerLog(_ context.Context, r *runtimeapi.ReopenContainerLogRequest) (*runtimeapi.ReopenContainerLogResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.find(r.ContainerId)
	return &runtimeapi.ReopenContainerLogResponse{}, err
}

// ExecSync runs OnExec.
func (s *Server) ExecSync(_ context.Context, r *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	s.mu.Lock()
	_, err := s.find(r.ContainerId)
	run := s.onExec
	s.mu.Unlock()
	if err != nil || run == nil {
		return &runtimeapi.ExecSyncResponse{}, err
	}
	return run(r)
}

// Exec, Attach and PortForward return a URL that refuses connections.
func (s *Server) Exec(context.Context, *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return &runtimeapi.ExecResponse{Url: "http://127.0.0.1:1/exec"}, nil
}

// Attach: see Exec.
func (s *Server) Attach(context.Context, *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return &runtimeapi.AttachResponse{Url: "http://127.0.0.1:1/attach"}, nil
}

// PortForward: see Exec.
func (s *Server) PortForward(context.Context, *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return &runtimeapi.PortForwardResponse{Url: "http://127.0.0.1:1/portforward"}, nil
}
