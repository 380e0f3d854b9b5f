package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// dockerManifest describes one image of a tar file to `docker load`.
type dockerManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// writeDockerManifest adds to a layout what `docker load` reads before Docker 25, which knows no layouts. It
// refers to the files of the layout. Other importers read the layout.
func writeDockerManifest(image v1.Image, name, dir string) error {
	manifest, err := image.Manifest()
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	blob := func(h v1.Hash) string { return filepath.Join("blobs", h.Algorithm, h.Hex) }
	m := dockerManifest{Config: blob(manifest.Config.Digest), RepoTags: []string{name}}
	for _, layer := range manifest.Layers {
		m.Layers = append(m.Layers, blob(layer.Digest))
	}
	text, err := json.Marshal([]dockerManifest{m})
	if err != nil {
		return fmt.Errorf("encode Docker's manifest: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), text, 0o600); err != nil {
		return fmt.Errorf("write Docker's manifest: %w", err)
	}
	return nil
}
