// Package image pulls, lists and removes images, with the names that other CRI servers give them.
package image

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/distribution/reference"
	dockerimage "github.com/moby/moby/api/types/image"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/engine"
)

// Images acts on Docker's images.
type Images struct {
	Engine     *engine.Engine
	PauseImage string // is not removed by garbage collection

	removing sync.Mutex
}

// List lists all images, or those of one name.
func (s *Images) List(ctx context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	if name := filter.GetImage().GetImage(); name != "" {
		one, _, err := s.Status(ctx, filter.GetImage())
		if err != nil || one == nil {
			return nil, err
		}
		return []*runtimeapi.Image{one}, nil
	}
	found, err := s.Engine.Images(ctx, "")
	if err != nil {
		return nil, err
	}
	pause := s.canonicalPause()
	all := make([]*runtimeapi.Image, 0, len(found))
	for _, item := range found {
		image := names(item.ID, item.RepoTags, item.RepoDigests)
		image.Size = uint64(max(item.Size, 0))
		image.Pinned = slices.Contains(image.RepoTags, pause)
		all = append(all, image)
	}
	return all, nil
}

// Status returns an image, or nil if there is none, and what Docker says about it.
func (s *Images) Status(ctx context.Context, spec *runtimeapi.ImageSpec) (*runtimeapi.Image, *dockerimage.InspectResponse, error) {
	found, err := s.Engine.Image(ctx, spec.GetImage())
	if engine.NotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	image := names(found.ID, found.RepoTags, found.RepoDigests)
	image.Size = uint64(max(found.Size, 0))
	image.Pinned = slices.Contains(image.RepoTags, s.canonicalPause())
	if found.Config != nil {
		image.Uid, image.Username = user(found.Config.User)
	}
	return image, &found, nil
}

func (s *Images) canonicalPause() string { return canonical(s.PauseImage) }

// names translates Docker's short names. Untagged images have placeholders there.
func names(id string, tags, digests []string) *runtimeapi.Image {
	image := &runtimeapi.Image{Id: id, Spec: &runtimeapi.ImageSpec{Image: id}}
	for _, tag := range tags {
		if tag != "<none>:<none>" {
			image.RepoTags = append(image.RepoTags, canonical(tag))
		}
	}
	for _, digest := range digests {
		if !strings.HasPrefix(digest, "<none>@") {
			image.RepoDigests = append(image.RepoDigests, canonical(digest))
		}
	}
	slices.Sort(image.RepoTags)
	return image
}

// canonical adds Docker's default registry and tag: busybox is docker.io/library/busybox:latest.
func canonical(name string) string {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return name
	}
	return reference.TagNameOnly(named).String()
}

// user splits an image's user, which is a name or a number, and may have a group.
func user(text string) (*runtimeapi.Int64Value, string) {
	name, _, _ := strings.Cut(text, ":")
	if name == "" {
		return nil, ""
	}
	if uid, err := strconv.ParseInt(name, 10, 64); err == nil {
		return &runtimeapi.Int64Value{Value: uid}, ""
	}
	return nil, name
}

// Remove removes an image with all its names. It may be repeated, also at the same time.
func (s *Images) Remove(ctx context.Context, spec *runtimeapi.ImageSpec) error {
	s.removing.Lock() // Docker answers parallel requests for one image with various errors
	defer s.removing.Unlock()
	found, err := s.Engine.Image(ctx, spec.GetImage())
	if engine.NotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	refs := slices.Clone(found.RepoTags)
	if len(refs) == 0 {
		refs = found.RepoDigests
	}
	// Docker removes an image with its last name, and refuses the ID of one that has several.
	for _, ref := range append(refs, found.ID) {
		if err := s.Engine.RemoveImage(ctx, ref); err != nil && !engine.NotFound(err) {
			return err
		}
	}
	return nil
}
