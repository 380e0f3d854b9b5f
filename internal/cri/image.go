package cri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ListImages lists all images of the node.
func (c *Client) ListImages(ctx context.Context) ([]*runtimeapi.Image, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return nil, failed(err, "list images")
	}
	return response.Images, nil
}

// ImageStatus returns an image, nil without an error if it is not on the node.
func (c *Client) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.Image, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: image, Verbose: verbose})
	if err != nil {
		return nil, failed(err, "get status of image "+image.GetImage())
	}
	if response.Image != nil && response.Image.Id == "" {
		return nil, failed(errEmptyResponse, "get status of image "+image.GetImage())
	}
	return response.Image, nil
}

// PullImage pulls an image and returns the runtime's reference to it. It has no timeout of its
// own: only ctx ends it.
func (c *Client) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	response, err := c.images.PullImage(ctx, &runtimeapi.PullImageRequest{Image: image, Auth: auth, SandboxConfig: sandbox})
	if err == nil && response.ImageRef == "" {
		err = errEmptyResponse
	}
	if err != nil {
		return "", failed(err, "pull image "+image.GetImage())
	}
	return response.ImageRef, nil
}

// RemoveImage removes an image under all its names.
func (c *Client) RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	_, err := c.images.RemoveImage(ctx, &runtimeapi.RemoveImageRequest{Image: image})
	return failed(ignoreNotFound(err), "remove image "+image.GetImage())
}

// ImageFsInfo returns the usage of the filesystems of images and containers.
func (c *Client) ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.images.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
	if err != nil {
		return nil, failed(err, "get image filesystem information")
	}
	return response, nil
}
