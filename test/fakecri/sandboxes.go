package fakecri

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	created = runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT
	started = runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT
	stopped = runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT
	deleted = runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT
)

// RunPodSandbox creates a ready sandbox with its own address.
func (s *Server) RunPodSandbox(_ context.Context, r *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.sandboxes {
		if proto.Equal(other.Metadata, r.Config.Metadata) {
			return nil, status.Errorf(codes.Unknown, "failed to reserve sandbox name: it is reserved for %q", other.Id)
		}
	}
	id := s.id("sandbox")
	options := r.Config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	if options == nil {
		options = &runtimeapi.NamespaceOption{}
	}
	sandbox := &runtimeapi.PodSandboxStatus{
		Id:             id,
		Metadata:       r.Config.Metadata,
		CreatedAt:      s.now().UnixNano(),
		Labels:         r.Config.Labels,
		Annotations:    r.Config.Annotations,
		RuntimeHandler: r.RuntimeHandler,
		Network:        &runtimeapi.PodSandboxNetworkStatus{},
		Linux:          &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: options}},
	}
	if options.Network != runtimeapi.NamespaceMode_NODE {
		sandbox.Network.Ip = fmt.Sprintf("10.1.%d.%d", s.nextID/250, s.nextID%250+1)
	}
	s.sandboxes[id] = sandbox
	s.emit(created, id, id)
	s.emit(started, id, id)
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: id}, nil
}

// StopPodSandbox kills the sandbox's containers and makes it not ready.
func (s *Server) StopPodSandbox(_ context.Context, r *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sandbox := s.sandboxes[r.PodSandboxId]
	if sandbox == nil {
		return &runtimeapi.StopPodSandboxResponse{}, nil
	}
	for _, c := range s.sorted() {
		if c.sandbox == sandbox.Id {
			s.exit(c, killedExitCode)
		}
	}
	if sandbox.State != runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
		sandbox.State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
		sandbox.Network = &runtimeapi.PodSandboxNetworkStatus{}
		s.emit(stopped, sandbox.Id, sandbox.Id)
	}
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

// RemovePodSandbox removes the sandbox and its containers.
func (s *Server) RemovePodSandbox(_ context.Context, r *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sandboxes[r.PodSandboxId] == nil {
		return &runtimeapi.RemovePodSandboxResponse{}, nil
	}
	for _, c := range s.sorted() {
		if c.sandbox == r.PodSandboxId {
			delete(s.containers, c.status.Id)
			s.emit(deleted, c.status.Id, r.PodSandboxId)
		}
	}
	s.emit(deleted, r.PodSandboxId, r.PodSandboxId)
	delete(s.sandboxes, r.PodSandboxId)
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

// PodSandboxStatus returns the status of a sandbox.
func (s *Server) PodSandboxStatus(_ context.Context, r *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sandbox := s.sandboxes[r.PodSandboxId]
	if sandbox == nil {
		return nil, status.Errorf(codes.NotFound, "sandbox %q not found", r.PodSandboxId)
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: proto.Clone(sandbox).(*runtimeapi.PodSandboxStatus)}, nil
}

// ListPodSandbox lists the sandboxes that match the filter.
func (s *Server) ListPodSandbox(_ context.Context, r *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := &runtimeapi.ListPodSandboxResponse{}
	f := r.GetFilter()
	for _, id := range slices.Sorted(maps.Keys(s.sandboxes)) {
		sb := s.sandboxes[id]
		if f.GetId() != "" && f.GetId() != id || f.GetState() != nil && f.GetState().State != sb.State || !matchesLabels(sb.Labels, f.GetLabelSelector()) {
			continue
		}
		answer.Items = append(answer.Items, &runtimeapi.PodSandbox{
			Id: id, Metadata: sb.Metadata, State: sb.State, CreatedAt: sb.CreatedAt,
			Labels: sb.Labels, Annotations: sb.Annotations, RuntimeHandler: sb.RuntimeHandler,
		})
	}
	return answer, nil
}

// KillSandbox makes a sandbox not ready, as if its pause process was killed.
func (s *Server) KillSandbox(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sandboxes[id].State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	s.emit(stopped, id, id)
}

// Sandboxes lists all sandboxes, oldest first.
func (s *Server) Sandboxes() []*runtimeapi.PodSandboxStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*runtimeapi.PodSandboxStatus
	for _, sandbox := range s.sandboxes {
		all = append(all, proto.Clone(sandbox).(*runtimeapi.PodSandboxStatus))
	}
	slices.SortFunc(all, func(a, b *runtimeapi.PodSandboxStatus) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return all
}

func matchesLabels(labels, selector map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// UpdatePodSandboxResources changes nothing.
func (s *Server) UpdatePodSandboxResources(_ context.Context, r *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.sandboxes[r.PodSandboxId]; !ok {
		return nil, status.Errorf(codes.NotFound, "sandbox %q not found", r.PodSandboxId)
	}
	return &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil
}
