package engine

import (
	"context"
	"fmt"

	"github.com/moby/moby/api/types/image"
	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/client"
)

// Images lists the images, filtered by reference if it is not empty.
func (e *Engine) Images(ctx context.Context, reference string) ([]image.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	filters := make(client.Filters)
	if reference != "" {
		filters.Add("reference", reference)
	}
	result, err := e.api.ImageList(ctx, client.ImageListOptions{Filters: filters})
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	return result.Items, nil
}

// Image returns everything about one image, by reference or ID.
func (e *Engine) Image(ctx context.Context, ref string) (image.InspectResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	result, err := e.api.ImageInspect(ctx, ref)
	if err != nil {
		return image.InspectResponse{}, fmt.Errorf("inspect image %s: %w", ref, err)
	}
	return result.InspectResponse, nil
}

// Pull pulls an image and reports progress. It has no deadline: the caller cancels ctx when progress stops.
func (e *Engine) Pull(ctx context.Context, ref, auth string, progress func(jsonstream.Message)) error {
	result, err := e.api.ImagePull(ctx, ref, client.ImagePullOptions{RegistryAuth: auth})
	if err != nil {
		return fmt.Errorf("pull image %s: %w", ref, err)
	}
	defer result.Close()
	for message, err := range result.JSONMessages(ctx) {
		if err != nil {
			return fmt.Errorf("pull image %s: %w", ref, err)
		}
		if message.Error != nil {
			return fmt.Errorf("pull image %s: %w", ref, message.Error)
		}
		progress(message)
	}
	return nil
}

// RemoveImage removes a tag, or an image that has no more than one.
func (e *Engine) RemoveImage(ctx context.Context, ref string) error {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	if _, err := e.api.ImageRemove(ctx, ref, client.ImageRemoveOptions{PruneChildren: true}); err != nil {
		return fmt.Errorf("remove image %s: %w", ref, err)
	}
	return nil
}
