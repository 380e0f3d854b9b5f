package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// epoch is every time in an image, so that builds are reproducible.
var epoch = time.Unix(0, 0).UTC()

// assemble builds an image of one layer: the binary, its libraries, and a writable /tmp.
func (p imageSpec) assemble(binary string) (v1.Image, error) {
	sources := map[string]string{p.binary: binary}
	if p.dynamic {
		libraries, err := librariesOf(binary)
		if err != nil {
			return nil, err
		}
		for _, library := range libraries {
			sources[library] = library
		}
	}
	files, err := layerTar(sources)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("build layer: %w", err)
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{
		Created: v1.Time{Time: epoch}, CreatedBy: "swiftlet images",
	}})
	if err != nil {
		return nil, fmt.Errorf("append layer: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read image configuration: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", runtime.GOARCH, v1.Time{Time: epoch}
	file.Config = v1.Config{Entrypoint: []string{p.binary}, User: p.user, WorkingDir: "/"}
	return mutate.ConfigFile(image, file)
}

// layerTar packs files, given as paths in the image and on this machine.
func layerTar(sources map[string]string) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777, ModTime: epoch}); err != nil {
		return nil, fmt.Errorf("write layer: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		content, err := os.ReadFile(sources[name])
		if err != nil {
			return nil, fmt.Errorf("read file of layer: %w", err)
		}
		h := tar.Header{
			Typeflag: tar.TypeReg, Name: strings.TrimPrefix(path.Clean(name), "/"), Mode: 0o755, Size: int64(len(content)), ModTime: epoch,
		}
		if err := w.WriteHeader(&h); err != nil {
			return nil, fmt.Errorf("write layer: %w", err)
		}
		if _, err := w.Write(content); err != nil {
			return nil, fmt.Errorf("write layer: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("write layer: %w", err)
	}
	return buffer.Bytes(), nil
}
