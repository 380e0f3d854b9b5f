package server

import (
	"context"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CreateContainer creates a container in a sandbox.
func (s *Server) CreateContainer(ctx context.Context, req *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	c, l, err := s.Sandboxes.Find(ctx, req.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	id, err := s.Containers.Create(ctx, c.ID, l, req.GetConfig())
	return &runtimeapi.CreateContainerResponse{ContainerId: id}, err
}

// StartContainer starts a container.
func (s *Server) StartContainer(ctx context.Context, req *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	return &runtimeapi.StartContainerResponse{}, s.Containers.Start(ctx, req.GetContainerId())
}

// StopContainer stops a container.
func (s *Server) StopContainer(ctx context.Context, req *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	return &runtimeapi.StopContainerResponse{}, s.Containers.Stop(ctx, req.GetContainerId(), time.Duration(req.GetTimeout())*time.Second)
}

// RemoveContainer removes a container.
func (s *Server) RemoveContainer(ctx context.Context, req *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	return &runtimeapi.RemoveContainerResponse{}, s.Containers.Remove(ctx, req.GetContainerId())
}

// ListContainers lists containers.
func (s *Server) ListContainers(ctx context.Context, req *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	all, err := s.Containers.List(ctx, req.GetFilter())
	return &runtimeapi.ListContainersResponse{Containers: all}, err
}

// ContainerStatus describes a container.
func (s *Server) ContainerStatus(ctx context.Context, req *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	status, err := s.Containers.Status(ctx, req.GetContainerId())
	if err != nil {
		return nil, err
	}
	answer := &runtimeapi.ContainerStatusResponse{Status: status}
	if req.GetVerbose() {
		answer.Info, err = s.inspected(ctx, status.GetId())
	}
	return answer, err
}

// UpdateContainerResources changes limits.
func (s *Server) UpdateContainerResources(ctx context.Context, req *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	return &runtimeapi.UpdateContainerResourcesResponse{}, s.Containers.Update(ctx, req.GetContainerId(), req.GetLinux())
}

// ReopenContainerLog follows a rotation.
func (s *Server) ReopenContainerLog(ctx context.Context, req *runtimeapi.ReopenContainerLogRequest) (*runtimeapi.ReopenContainerLogResponse, error) {
	return &runtimeapi.ReopenContainerLogResponse{}, s.Containers.ReopenLog(ctx, req.GetContainerId())
}

// ExecSync runs a command and returns its output.
func (s *Server) ExecSync(ctx context.Context, req *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	if err := s.Runtime.Running(ctx, req.GetContainerId()); err != nil {
		return nil, err
	}
	stdout, stderr, code, err := s.Commands.RunSync(ctx, req.GetContainerId(), req.GetCmd(), time.Duration(req.GetTimeout())*time.Second)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ExecSyncResponse{Stdout: stdout, Stderr: stderr, ExitCode: int32(code)}, nil
}

// Exec prepares a stream to a command.
func (s *Server) Exec(ctx context.Context, req *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	if err := s.Runtime.Running(ctx, req.GetContainerId()); err != nil {
		return nil, err
	}
	return s.Streams.GetExec(req)
}

// Attach prepares a stream to a container.
func (s *Server) Attach(ctx context.Context, req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	if err := s.Runtime.Running(ctx, req.GetContainerId()); err != nil {
		return nil, err
	}
	return s.Streams.GetAttach(req)
}

// ContainerStats reads the usage of a container.
func (s *Server) ContainerStats(ctx context.Context, req *runtimeapi.ContainerStatsRequest) (*runtimeapi.ContainerStatsResponse, error) {
	usage, err := s.Stats.Container(ctx, req.GetContainerId())
	return &runtimeapi.ContainerStatsResponse{Stats: usage}, err
}

// ListContainerStats reads the usage of containers.
func (s *Server) ListContainerStats(ctx context.Context, req *runtimeapi.ListContainerStatsRequest) (*runtimeapi.ListContainerStatsResponse, error) {
	usage, err := s.Stats.ListContainers(ctx, req.GetFilter())
	return &runtimeapi.ListContainerStatsResponse{Stats: usage}, err
}

// GetContainerEvents streams events. The header says that the stream has begun.
func (s *Server) GetContainerEvents(_ *runtimeapi.GetEventsRequest, stream grpc.ServerStreamingServer[runtimeapi.ContainerEventResponse]) error {
	return s.Events.Subscribe(stream.Context(), func() error { return stream.SendHeader(nil) }, stream.Send)
}
