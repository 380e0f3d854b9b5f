package server

import (
	"slices"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// perMessage keeps a message far below the limit of gRPC, whatever the annotations of pods are.
const perMessage = 20

// inParts sends a list in several messages.
func inParts[T any](all []T, err error, send func([]T) error) error {
	if err != nil {
		return err
	}
	for part := range slices.Chunk(all, perMessage) {
		if err := send(part); err != nil {
			return err
		}
	}
	return nil
}

// StreamPodSandboxes lists sandboxes.
func (s *Server) StreamPodSandboxes(req *runtimeapi.StreamPodSandboxesRequest, stream grpc.ServerStreamingServer[runtimeapi.StreamPodSandboxesResponse]) error {
	all, err := s.Sandboxes.List(stream.Context(), req.GetFilter())
	return inParts(all, err, func(part []*runtimeapi.PodSandbox) error {
		return stream.Send(&runtimeapi.StreamPodSandboxesResponse{PodSandboxes: part})
	})
}

// StreamContainers lists containers.
func (s *Server) StreamContainers(req *runtimeapi.StreamContainersRequest, stream grpc.ServerStreamingServer[runtimeapi.StreamContainersResponse]) error {
	all, err := s.Containers.List(stream.Context(), req.GetFilter())
	return inParts(all, err, func(part []*runtimeapi.Container) error {
		return stream.Send(&runtimeapi.StreamContainersResponse{Containers: part})
	})
}

// StreamImages lists images.
func (s *Server) StreamImages(req *runtimeapi.StreamImagesRequest, stream grpc.ServerStreamingServer[runtimeapi.StreamImagesResponse]) error {
	all, err := s.Images.List(stream.Context(), req.GetFilter())
	return inParts(all, err, func(part []*runtimeapi.Image) error {
		return stream.Send(&runtimeapi.StreamImagesResponse{Images: part})
	})
}

// StreamContainerStats reads the usage of containers.
func (s *Server) StreamContainerStats(req *runtimeapi.StreamContainerStatsRequest, stream grpc.ServerStreamingServer[runtimeapi.StreamContainerStatsResponse]) error {
	all, err := s.Stats.ListContainers(stream.Context(), req.GetFilter())
	return inParts(all, err, func(part []*runtimeapi.ContainerStats) error {
		return stream.Send(&runtimeapi.StreamContainerStatsResponse{ContainerStats: part})
	})
}

// StreamPodSandboxStats reads the usage of sandboxes.
func (s *Server) StreamPodSandboxStats(req *runtimeapi.StreamPodSandboxStatsRequest, stream grpc.ServerStreamingServer[runtimeapi.StreamPodSandboxStatsResponse]) error {
	all, err := s.Stats.ListPods(stream.Context(), req.GetFilter())
	return inParts(all, err, func(part []*runtimeapi.PodSandboxStats) error {
		return stream.Send(&runtimeapi.StreamPodSandboxStatsResponse{PodSandboxStats: part})
	})
}
