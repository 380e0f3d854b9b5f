package server

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/events"
)

// RunPodSandbox starts a sandbox.
func (s *Server) RunPodSandbox(ctx context.Context, req *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	id, err := s.Sandboxes.Run(ctx, req.GetConfig(), req.GetRuntimeHandler())
	if err != nil {
		return nil, err
	}
	s.Events.SandboxStarted(ctx, id)
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: id}, nil
}

// StopPodSandbox stops a sandbox and its containers.
func (s *Server) StopPodSandbox(ctx context.Context, req *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	return &runtimeapi.StopPodSandboxResponse{}, s.Sandboxes.Stop(ctx, req.GetPodSandboxId())
}

// RemovePodSandbox removes a sandbox and its containers.
func (s *Server) RemovePodSandbox(ctx context.Context, req *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	return &runtimeapi.RemovePodSandboxResponse{}, s.Sandboxes.Remove(ctx, req.GetPodSandboxId())
}

// PodSandboxStatus describes a sandbox and its containers.
func (s *Server) PodSandboxStatus(ctx context.Context, req *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	at := time.Now().UnixNano() // nothing in the answer is older
	status, err := s.Sandboxes.Status(ctx, req.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	answer := &runtimeapi.PodSandboxStatusResponse{Status: status, Timestamp: at}
	if answer.ContainersStatuses, err = events.Members(ctx, s.Containers, status.GetId()); err != nil {
		return nil, err
	}
	if req.GetVerbose() {
		answer.Info, err = s.inspected(ctx, status.GetId())
	}
	return answer, err
}

// ListPodSandbox lists sandboxes.
func (s *Server) ListPodSandbox(ctx context.Context, req *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	items, err := s.Sandboxes.List(ctx, req.GetFilter())
	return &runtimeapi.ListPodSandboxResponse{Items: items}, err
}

// PodSandboxStats reads the usage of a sandbox.
func (s *Server) PodSandboxStats(ctx context.Context, req *runtimeapi.PodSandboxStatsRequest) (*runtimeapi.PodSandboxStatsResponse, error) {
	usage, err := s.Stats.Pod(ctx, req.GetPodSandboxId())
	return &runtimeapi.PodSandboxStatsResponse{Stats: usage}, err
}

// ListPodSandboxStats reads the usage of sandboxes.
func (s *Server) ListPodSandboxStats(ctx context.Context, req *runtimeapi.ListPodSandboxStatsRequest) (*runtimeapi.ListPodSandboxStatsResponse, error) {
	usage, err := s.Stats.ListPods(ctx, req.GetFilter())
	return &runtimeapi.ListPodSandboxStatsResponse{Stats: usage}, err
}

// PortForward prepares forwarding.
func (s *Server) PortForward(ctx context.Context, req *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	if _, _, err := s.Sandboxes.Find(ctx, req.GetPodSandboxId()); err != nil {
		return nil, err
	}
	return s.Streams.GetPortForward(req)
}

// inspected is what Docker says, for `crictl inspect`, with the PID where other CRI servers have it.
func (s *Server) inspected(ctx context.Context, id string) (map[string]string, error) {
	c, err := s.Engine.Inspect(ctx, id)
	if err != nil {
		return nil, err
	}
	c.Config.Env = nil // may have secrets
	text, err := json.Marshal(map[string]any{"pid": c.State.Pid, "docker": c})
	if err != nil {
		return nil, fmt.Errorf("encode container: %w", err)
	}
	return map[string]string{"info": string(text)}, nil
}
