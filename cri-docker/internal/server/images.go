package server

import (
	"context"
	"encoding/json"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ListImages lists images.
func (s *Server) ListImages(ctx context.Context, req *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	all, err := s.Images.List(ctx, req.GetFilter())
	return &runtimeapi.ListImagesResponse{Images: all}, err
}

// ImageStatus describes an image. One that does not exist is no error.
func (s *Server) ImageStatus(ctx context.Context, req *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	image, found, err := s.Images.Status(ctx, req.GetImage())
	if err != nil {
		return nil, err
	}
	answer := &runtimeapi.ImageStatusResponse{Image: image}
	if found != nil && req.GetVerbose() {
		text, err := json.Marshal(map[string]any{"docker": found})
		if err != nil {
			return nil, fmt.Errorf("encode image: %w", err)
		}
		answer.Info = map[string]string{"info": string(text)}
	}
	return answer, nil
}

// PullImage pulls an image.
func (s *Server) PullImage(ctx context.Context, req *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	id, err := s.Images.Pull(ctx, req.GetImage(), req.GetAuth())
	return &runtimeapi.PullImageResponse{ImageRef: id}, err
}

// RemoveImage removes an image.
func (s *Server) RemoveImage(ctx context.Context, req *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	return &runtimeapi.RemoveImageResponse{}, s.Images.Remove(ctx, req.GetImage())
}

// ImageFsInfo measures the disk that images use. Docker keeps containers on the same one.
func (s *Server) ImageFsInfo(ctx context.Context, _ *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	usage, err := s.Filesystem.Usage(ctx)
	if err != nil {
		return nil, err
	}
	both := []*runtimeapi.FilesystemUsage{usage}
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: both, ContainerFilesystems: both}, nil
}
