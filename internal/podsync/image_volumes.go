package podsync

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/image"
	"swiftlet/internal/runtime"
	"swiftlet/internal/why"
)

// imageVolume is the image of an image volume, or why it could not be pulled.
type imageVolume struct {
	reference string
	image     image.Image
	err       error
}

// pullImageVolumes pulls the images of the pod's image volumes, all at the same time.
func (a *attempt) pullImageVolumes(ctx context.Context) map[string]func() imageVolume {
	pulled := map[string]func() imageVolume{}
	for _, v := range a.p.Spec.Volumes {
		if v.Image == nil {
			continue
		}
		// Without a name, events are about the pod, as volumes belong to no container.
		as := &v1.Container{Image: v.Image.Reference, ImagePullPolicy: v.Image.PullPolicy}
		result := inBackground(func() (imageVolume, error) {
			got, err := a.ensureImage(ctx, as, why.Step{Kind: why.ImageVolume, Name: v.Name})
			return imageVolume{v.Image.Reference, got, err}, nil
		})
		pulled[v.Name] = func() imageVolume {
			got, err := result()
			if err != nil { // a panic
				got.err = err
			}
			return got
		}
	}
	return pulled
}

// imageVolumesOf waits for the images of the container's volumes.
func (a *attempt) imageVolumesOf(c *v1.Container) (map[string]*runtime.VolumeImage, error) {
	images := map[string]*runtime.VolumeImage{}
	for _, m := range c.VolumeMounts {
		pulled, ok := a.imageVolumes[m.Name]
		if !ok {
			continue
		}
		got := pulled()
		if got.err != nil {
			return nil, fmt.Errorf("fetch image volume %q: %w", m.Name, got.err)
		}
		images[m.Name] = &runtime.VolumeImage{Ref: got.image.Ref, Reference: got.reference}
	}
	return images, nil
}

// measureImageVolumes counts an attempt to create a container with image volumes.
func (a *attempt) measureImageVolumes(images int, err error) {
	if a.deps.Meters.ImageVolumes == nil || images == 0 {
		return
	}
	a.deps.Meters.ImageVolumes(images, !runtime.ImageMountFailed(err))
}
