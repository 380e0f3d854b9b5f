package kubeadm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"swiftlet/test/images"
)

// Release is the version of the cluster.
const Release = "v1.37.1"

// Images builds the images that kubeadm asks for, under their names, and returns their archives.
// pause is the path of the bed's pause program. Archives are cached next to kubeadm.
func (p *Programs) Images(ctx context.Context, pause string) ([]string, error) {
	list, err := exec.CommandContext(ctx, filepath.Join(p.Addons, "kubeadm"),
		"config", "images", "list", "--kubernetes-version", Release).Output()
	if err != nil {
		return nil, fmt.Errorf("list images of kubeadm: %w", err)
	}
	// The programs of the control plane have a key of their own in the name of their directory.
	dir := filepath.Join(p.Addons, "images-"+filepath.Base(p.Reference))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make image cache: %w", err)
	}
	var archives []string
	for ref := range strings.FieldsSeq(string(list)) {
		archive, err := p.archive(ctx, dir, ref, pause)
		if err != nil {
			return nil, fmt.Errorf("make image %s: %w", ref, err)
		}
		archives = append(archives, archive)
	}
	return archives, nil
}

// archive builds an image's archive, or finds it in dir.
func (p *Programs) archive(ctx context.Context, dir, ref, pause string) (string, error) {
	tag, err := name.NewTag(ref)
	if err != nil {
		return "", err
	}
	program := filepath.Base(tag.RepositoryStr())
	archive := filepath.Join(dir, program+".tar")
	if _, err := os.Stat(archive); err == nil {
		return archive, nil
	}
	image, err := p.image(ctx, program, pause)
	if err != nil {
		return "", err
	}
	next := archive + ".next"
	if err := images.Write(next, ref, image); err != nil {
		return "", err
	}
	return archive, os.Rename(next, archive)
}

// image returns an image of one program, at the path where kubeadm's manifests expect it.
func (p *Programs) image(ctx context.Context, program, pause string) (v1.Image, error) {
	config := v1.Config{Env: []string{images.SearchPath}}
	path, target := filepath.Join(p.Reference, program), "usr/local/bin/"+program
	var others []images.Entry
	var err error
	switch program {
	case "pause":
		path, target, config.Entrypoint = pause, "pause", []string{"/pause"}
	case "coredns":
		path, target, config.Entrypoint = filepath.Join(p.Addons, program), "coredns", []string{"/coredns"}
	case "kube-proxy":
		path = filepath.Join(p.Addons, program)
		if others, err = images.HostPrograms(ctx, "nft"); err != nil {
			return nil, err
		}
	}
	entry, err := images.File(path, target, 0o755)
	if err != nil {
		return nil, err
	}
	layer, err := images.Layer(append(others, entry)...)
	if err != nil {
		return nil, err
	}
	return images.Compose(config, layer)
}
