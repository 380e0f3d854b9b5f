package podsync

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/image"
	"swiftlet/internal/runtime"
)

// imageVolume is an image that containers mount, or why it is not there.
type imageVolume struct {
	reference string
	image     image.Image
	err       error
}

// fetchImageVolumes fetches the images that the pod's volumes name, all at the same time.
func (a *attempt) fetchImageVolumes(ctx context.Context) map[string]func() imageVolume {
	fetched := map[string]func() imageVolume{}
	for _, v := range a.p.Spec.Volumes {
		if v.Image == nil {
			continue
		}
		// Nameless, so that events are about the pod: no container is to blame for its volumes.
		as := &v1.Container{Image: v.Image.Reference, ImagePullPolicy: v.Image.PullPolicy}
		result := inBackground(func() (imageVolume, error) {
			got, err := a.deps.Images.Ensure(ctx, a.p, as, a.prepared)
			return imageVolume{v.Image.Reference, got, err}, nil
		})
		fetched[v.Name] = func() imageVolume { got, _ := result(); return got }
	}
	return fetched
}

// imageVolumesOf waits for the images that the container mounts.
func (a *attempt) imageVolumesOf(c *v1.Container) (map[string]*runtime.VolumeImage, error) {
	images := map[string]*runtime.VolumeImage{}
	for _, m := range c.VolumeMounts {
		fetched, ok := a.imageVolumes[m.Name]
		if !ok {
			continue
		}
		got := fetched()
		if got.err != nil {
			return nil, fmt.Errorf("fetch image volume %q: %w", m.Name, got.err)
		}
		images[m.Name] = &runtime.VolumeImage{Ref: got.image.Ref, Reference: got.reference}
	}
	return images, nil
}

// measureImageVolumes counts a try to create a container that mounts images.
func (a *attempt) measureImageVolumes(images int, err error) {
	if a.deps.Meters.ImageVolumes == nil || images == 0 {
		return
	}
	a.deps.Meters.ImageVolumes(images, !runtime.ImageMountFailed(err))
}
