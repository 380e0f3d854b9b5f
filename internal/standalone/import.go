package standalone

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/boundedio"
	"swiftlet/internal/program"
)

// imageNames are the annotations that hold image names in the index of an OCI layout.
var imageNames = []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"}

// importImages imports the tar files of ImageDirs into the runtime, except for images that it
// already has under the same name with the same digest.
func (s *Supervisor) importImages(ctx context.Context) error {
	files, err := imageFiles(s.cfg.ImageDirs)
	if err != nil {
		return err
	}
	have, err := s.imagesByDigest(ctx)
	if err != nil {
		return err
	}
	var imageNamesWanted []string
	for i, file := range files {
		images, err := imagesIn(file)
		if err != nil {
			return fmt.Errorf("read image %s: %w", file, err)
		}
		needsImport := len(images) == 0 // an archive of another format is left to the importer
		for name, digest := range images {
			imageNamesWanted = append(imageNamesWanted, name)
			needsImport = needsImport || have[name] != digest
		}
		if !needsImport {
			continue
		}
		began := s.deps.Clock.Now()
		if err := s.ctr(ctx, importTimeout, "images", "import", file); err != nil {
			return fmt.Errorf("import %s: %w", file, err)
		}
		s.progress("imported %s, %d of %d, in %s", filepath.Base(file), i+1, len(files), s.since(began))
	}
	return s.awaitImages(ctx, imageNamesWanted)
}

func imageFiles(dirs []string) ([]string, error) {
	var files []string
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join(dir, "*.tar"))
		if err != nil {
			return nil, fmt.Errorf("find images in %s: %w", dir, err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("find images in %s: no *.tar found; run `make build` to build the bundled images", dir)
		}
		files = append(files, found...)
	}
	return files, nil
}

// imagesIn reads image names and digests from the index of an OCI layout without reading the
// layers: in the bundled tar files the index is the first entry.
func imagesIn(file string) (map[string]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := tar.NewReader(f)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if filepath.Clean(header.Name) == "index.json" {
			return namesInIndex(io.LimitReader(r, 1<<20))
		}
	}
}

func namesInIndex(r io.Reader) (map[string]string, error) {
	var index struct {
		Manifests []struct {
			Digest      string            `json:"digest"`
			Annotations map[string]string `json:"annotations"`
		} `json:"manifests"`
	}
	if err := json.NewDecoder(io.LimitReader(r, boundedio.Document)).Decode(&index); err != nil {
		return nil, fmt.Errorf("decode image index: %w", err)
	}
	images := map[string]string{}
	for _, m := range index.Manifests {
		for _, key := range imageNames {
			// Some builders write only the tag here, which does not name an image.
			if name := m.Annotations[key]; strings.Contains(name, "/") {
				images[name] = m.Digest
				break
			}
		}
	}
	return images, nil
}

// imagesByDigest reads containerd's image store: CRI has digests only of pulled images.
func (s *Supervisor) imagesByDigest(ctx context.Context) (map[string]string, error) {
	out, err := s.ctrOutput(ctx, listTimeout, "images", "list")
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	have := map[string]string{}
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) >= 3 && strings.HasPrefix(fields[2], "sha256:") {
			have[fields[0]] = fields[2]
		}
	}
	return have, nil
}

// awaitImages returns once CRI lists the images. That is shortly after the import; a pod that
// starts in between would pull from a registry.
func (s *Supervisor) awaitImages(ctx context.Context, names []string) error {
	return s.poll(ctx, time.Minute, "wait for imported images", func(ctx context.Context) error {
		images, err := s.deps.Runtime.ListImages(ctx)
		if err != nil {
			return err
		}
		for _, name := range names {
			known := slices.ContainsFunc(images, func(i *runtimeapi.Image) bool { return slices.Contains(i.RepoTags, name) })
			if !known {
				return fmt.Errorf("image %s is not listed", name)
			}
		}
		return nil
	})
}

func (s *Supervisor) ctr(ctx context.Context, timeout time.Duration, args ...string) error {
	_, err := s.ctrOutput(ctx, timeout, args...)
	return err
}

// ctrOutput runs the bundled ctr in the containerd namespace of CRI.
func (s *Supervisor) ctrOutput(ctx context.Context, timeout time.Duration, args ...string) (string, error) {
	args = append([]string{"--address", s.cfg.Paths.Socket(), "--namespace", "k8s.io"}, args...)
	out, err := program.Output(ctx, timeout, boundedio.Document, s.cfg.Paths.program("ctr"), args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return string(out), err
}
