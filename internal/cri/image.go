package cri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ListImages lists all images of the node.
func (c *Client) ListImages(ctx context.Context) ([]*runtimeapi.Image, error) {
	ctx, cancel := c.within(ctx, 0)
	defer cancel()
	answer, err := c.images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return nil, failed(err, "list images")
	}
	return answer.Images, nil
}

// ImageStatus looks an image up; one that is not on the node is nil without an error.
func (c *Client) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.Image, error) {
	ctx, cancel := c.within(ctx, 0)
	defer cancel()
	answer, err := c.images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: image, Verbose: verbose})
	if err != nil {
		return nil, failed(err, "get status of image "+image.GetImage())
	}
	if answer.Image != nil && answer.Image.Id == "" {
		return nil, failed(errEmptyAnswer, "get status of image "+image.GetImage())
	}
	return answer.Image, nil
}

// PullImage fetches an image and returns the runtime's reference to it. Pulls take as
// long as they take: only ctx ends one.
func (c *Client) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	answer, err := c.images.PullImage(ctx, &runtimeapi.PullImageRequest{Image: image, Auth: auth, SandboxConfig: sandbox})
	if err == nil && answer.ImageRef == "" {
		err = errEmptyAnswer
	}
	if err != nil {
		return "", failed(err, "pull image "+image.GetImage())
	}
	return answer.ImageRef, nil
}

// RemoveImage removes an image under all its names.
func (c *Client) RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error {
	ctx, cancel := c.within(ctx, 0)
	defer cancel()
	_, err := c.images.RemoveImage(ctx, &runtimeapi.RemoveImageRequest{Image: image})
	return failed(goneIsDone(err), "remove image "+image.GetImage())
}

// ImageFsInfo tells how full the filesystems of images and containers are.
func (c *Client) ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	ctx, cancel := c.within(ctx, 0)
	defer cancel()
	answer, err := c.images.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
	if err != nil {
		return nil, failed(err, "get image filesystem information")
	}
	return answer, nil
}
