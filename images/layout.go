package main

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// writeLayout writes the image as an OCI layout in a tar file, which `docker load` reads, too. The index, which has the manifest's
// digest, comes first, so that an importer can check quickly whether it already has the image.
func writeLayout(image v1.Image, name, dir, file string) (digest string, err error) {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return "", fmt.Errorf("create layout: %w", err)
	}
	// Both names are in use among importers: the first is containerd's own.
	names := map[string]string{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
	if err := path.AppendImage(image, layout.WithAnnotations(names)); err != nil {
		return "", fmt.Errorf("write layout: %w", err)
	}
	if err := writeDockerManifest(image, name, dir); err != nil {
		return "", err
	}
	hash, err := image.Digest()
	if err != nil {
		return "", fmt.Errorf("digest image: %w", err)
	}
	return hash.String(), tarDir(dir, file)
}

// tarDir packs dir reproducibly: the index first, then the other files in sorted order. It writes the
// file atomically.
func tarDir(dir, file string) error {
	next, err := os.CreateTemp(filepath.Dir(file), ".image-")
	if err != nil {
		return fmt.Errorf("create %s: %w", file, err)
	}
	defer os.Remove(next.Name())
	defer next.Close()
	w := tar.NewWriter(next)
	if err := addFile(w, dir, "index.json"); err != nil {
		return err
	}
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == "index.json" {
			return err
		}
		return addFile(w, dir, name)
	})
	if err != nil {
		return fmt.Errorf("pack %s: %w", file, err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("pack %s: %w", file, err)
	}
	if err := next.Chmod(0o644); err != nil {
		return fmt.Errorf("pack %s: %w", file, err)
	}
	return os.Rename(next.Name(), file)
}

func addFile(w *tar.Writer, dir, name string) error {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h := tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size(), ModTime: epoch}
	if err := w.WriteHeader(&h); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
