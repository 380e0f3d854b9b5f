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

// Registry is the registry of the suite's images.
const Registry = "registry.k8s.io"

// recipe is part of the cache key: change it when images are built in another way.
const recipe = "6"

// Image is an image of the suite, as a file.
type Image struct {
	Path    string // its name without the registry, with tag
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

// Images builds the images of tests, under the suite's names, and caches them next to the programs.
// pause is the path of the bed's pause program.
func (p *Programs) Images(ctx context.Context, pause string, tests []string) ([]Image, error) {
	dir := p.path("images-" + recipe)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make image cache: %w", err)
	}
	var all []Image
	imageBuilder := &imageBuilder{programs: p, pause: pause}
	for _, r := range recipesFor(tests) {
		image := Image{Path: r.path, Archive: filepath.Join(dir, filepath.Base(r.path)+".tar")}
		all = append(all, image)
		if _, err := os.Stat(image.Archive); err == nil {
			continue
		}
		if err := imageBuilder.write(ctx, r, image.Archive); err != nil {
			return nil, fmt.Errorf("make image %s: %w", r.path, err)
		}
	}
	return all, nil
}

// write writes the archive atomically.
func (m *imageBuilder) write(ctx context.Context, r imageRecipe, archive string) error {
	image, err := r.make(m, ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(archive), "next-") // two runs may build it at the same time
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
