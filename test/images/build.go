package images

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// The names of the images.
const (
	Busybox = "docker.io/library/busybox:1.36"
	Pause   = "registry.k8s.io/pause:3.10"
)

//go:embed pause/pause.c
var pauseSource []byte

// recipe is part of the cache key: change it when images are built in another way.
const recipe = "2"

// Set has the files of the images.
type Set struct {
	Archives map[string]string // image name → docker archive, as `ctr images import` takes it
	PauseBin string            // the pause program itself: a small init that reaps
}

// Build builds the images, or finds them in cacheDir, where they are keyed by their content. It
// needs gcc and busybox-static.
func Build(ctx context.Context, cacheDir string) (*Set, error) {
	busybox, err := staticBusybox()
	if err != nil {
		return nil, err
	}
	key, err := contentKey(busybox)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cacheDir, "images-"+key)
	set := &Set{
		Archives: map[string]string{
			Busybox: filepath.Join(dir, "busybox.tar"),
			Pause:   filepath.Join(dir, "pause.tar"),
		},
		PauseBin: filepath.Join(dir, "pause"),
	}
	if _, err := os.Stat(dir); err == nil {
		return set, nil
	}
	return set, fill(ctx, dir, busybox)
}

// fill builds in a temporary directory and renames it, so that a reader never finds an incomplete
// set and concurrent builds do no harm.
func fill(ctx context.Context, dir, busybox string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make image cache: %w", err)
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "images-making-")
	if err != nil {
		return fmt.Errorf("make image cache: %w", err)
	}
	defer os.RemoveAll(work)
	pause := filepath.Join(work, "pause")
	if err := compilePause(ctx, pause); err != nil {
		return err
	}
	pauseImage, err := pauseImage(pause)
	if err != nil {
		return err
	}
	busyboxImage, err := busyboxImage(ctx, busybox)
	if err != nil {
		return err
	}
	if err := Write(filepath.Join(work, "pause.tar"), Pause, pauseImage); err != nil {
		return err
	}
	if err := Write(filepath.Join(work, "busybox.tar"), Busybox, busyboxImage); err != nil {
		return err
	}
	if err := os.Chmod(work, 0o755); err != nil {
		return fmt.Errorf("make image cache: %w", err)
	}
	if err := os.Rename(work, dir); err != nil {
		if _, there := os.Stat(dir); there == nil {
			return nil // another build was faster
		}
		return fmt.Errorf("make image cache: %w", err)
	}
	return nil
}

// Write stores the image as a docker archive under its name.
func Write(path, ref string, image v1.Image) error {
	tag, err := name.NewTag(ref)
	if err != nil {
		return fmt.Errorf("write image %s: %w", ref, err)
	}
	if err := tarball.WriteToFile(path, tag, image); err != nil {
		return fmt.Errorf("write image %s: %w", ref, err)
	}
	return nil
}

func compilePause(ctx context.Context, out string) error {
	source := out + ".c"
	if err := os.WriteFile(source, pauseSource, 0o644); err != nil {
		return fmt.Errorf("compile pause: %w", err)
	}
	text, err := exec.CommandContext(ctx, "gcc", "-Os", "-static", "-s", "-Wall", "-o", out, source).CombinedOutput()
	if err != nil {
		return fmt.Errorf("compile pause: %w: %s", err, text)
	}
	return nil
}

// staticBusybox finds busybox and checks that it is linked statically: the image has no libraries,
// and Debian installs both variants at the same path.
func staticBusybox() (string, error) {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return "", fmt.Errorf("find busybox (run hack/install-deps.sh): %w", err)
	}
	program, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("read busybox: %w", err)
	}
	defer program.Close()
	for _, segment := range program.Progs {
		if segment.Type == elf.PT_INTERP {
			return "", fmt.Errorf("find busybox: %s is not linked statically (run hack/install-deps.sh)", path)
		}
	}
	return path, nil
}

func contentKey(busybox string) (string, error) {
	hash := sha256.New()
	io.WriteString(hash, recipe)
	hash.Write(pauseSource)
	file, err := os.Open(busybox)
	if err != nil {
		return "", fmt.Errorf("hash busybox: %w", err)
	}
	defer file.Close()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("hash busybox: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}
