package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"swiftlet/test/images"
)

// Registry is where the suite believes its images to come from.
const Registry = "registry.k8s.io"

// recipe is part of where images are kept: raise it when the way one is made changes.
const recipe = "5"

// Image is one of the suite's images as a file on this machine.
type Image struct {
	Path    string // its name below the registry, with tag
	Archive string // as `ctr images import` takes it
}

// Load reads the archive.
func (i Image) Load() (v1.Image, error) {
	tag, err := name.NewTag(Registry + "/" + i.Path)
	if err != nil {
		return nil, fmt.Errorf("load image: %w", err)
	}
	img, err := tarball.ImageFromPath(i.Archive, &tag)
	if err != nil {
		return nil, fmt.Errorf("load image %s: %w", i.Path, err)
	}
	return img, nil
}

// Images returns the images of tests under the names that the suite asks for, kept beside
// the programs that they are made of. pause is the bed's own program of that name.
func (p *Programs) Images(ctx context.Context, pause string, tests []string) ([]Image, error) {
	dir := p.path("images-" + recipe)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make image cache: %w", err)
	}
	var all []Image
	maker := &maker{programs: p, pause: pause}
	for _, r := range recipesFor(tests) {
		image := Image{Path: r.path, Archive: filepath.Join(dir, filepath.Base(r.path)+".tar")}
		all = append(all, image)
		if _, err := os.Stat(image.Archive); err == nil {
			continue
		}
		if err := maker.write(ctx, r, image.Archive); err != nil {
			return nil, fmt.Errorf("make image %s: %w", r.path, err)
		}
	}
	return all, nil
}

// write makes the archive appear whole or not at all.
func (m *maker) write(ctx context.Context, r recipeOf, archive string) error {
	image, err := r.make(m, ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(archive), "next-") // two runs may make it at a time
	if err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	defer os.RemoveAll(dir)
	next := filepath.Join(dir, "image.tar")
	if err := images.Write(next, Registry+"/"+r.path, image); err != nil {
		return err
	}
	return os.Rename(next, archive)
}
