package fakecri

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ImageID is the ID of an image of that name.
func ImageID(name string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(name))) }

// AddImage adds an image to the node, under exactly this name.
func (s *Server) AddImage(name string, size uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addImage(name, size)
}

func (s *Server) addImage(name string, size uint64) {
	s.images[name] = &runtimeapi.Image{Id: ImageID(name), RepoTags: []string{name}, Size: size, Spec: &runtimeapi.ImageSpec{Image: name}}
}

// Publish adds an image to the registry, so that it can be pulled.
func (s *Server) Publish(name string, size uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registry[name] = size
}

// ListImages lists the images on the node.
func (s *Server) ListImages(context.Context, *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := &runtimeapi.ListImagesResponse{}
	for _, name := range slices.Sorted(maps.Keys(s.images)) {
		answer.Images = append(answer.Images, s.images[name])
	}
	return answer, nil
}

// ImageStatus finds an image by name or ID.
func (s *Server) ImageStatus(_ context.Context, r *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, image := range s.images {
		if r.GetImage().GetImage() == name || r.GetImage().GetImage() == image.Id {
			return &runtimeapi.ImageStatusResponse{Image: image}, nil
		}
	}
	return &runtimeapi.ImageStatusResponse{}, nil
}

// PullImage adds a published image to the node.
func (s *Server) PullImage(_ context.Context, r *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.GetImage().GetImage()
	size, ok := s.registry[name]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "failed to pull and unpack image %q: failed to resolve image: %s: not found", name, name)
	}
	s.addImage(name, size)
	return &runtimeapi.PullImageResponse{ImageRef: ImageID(name)}, nil
}

// RemoveImage removes an image by name or ID.
func (s *Server) RemoveImage(_ context.Context, r *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.images, func(name string, image *runtimeapi.Image) bool {
		return r.GetImage().GetImage() == name || r.GetImage().GetImage() == image.Id
	})
	return &runtimeapi.RemoveImageResponse{}, nil
}

// ImageFsInfo describes one small filesystem.
func (s *Server) ImageFsInfo(context.Context, *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{{
		Timestamp:  s.now().UnixNano(),
		FsId:       &runtimeapi.FilesystemIdentifier{Mountpoint: "/"},
		UsedBytes:  &runtimeapi.UInt64Value{Value: 1 << 20},
		InodesUsed: &runtimeapi.UInt64Value{Value: 1},
	}}}, nil
}
