package conformance

import (
	"context"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"swiftlet/test/images"
)

const (
	// A test of image volumes looks for this name in the image.
	agnhostRelease = "NAME=\"Alpine Linux\"\nID=alpine\n"
	// A test of supplementary groups needs a user with a group that is defined in the image.
	agnhostUsers = "root:x:0:0:root:/root:/bin/sh\n" +
		"nobody:x:65534:65534:nobody:/home:/bin/false\n" +
		"user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh\n"
	agnhostGroups = "root:x:0:\nnogroup:x:65534:\nuser-defined-in-image:x:1000:\n" +
		"group-defined-in-image:x:50000:user-defined-in-image\n"
)

func (m *imageBuilder) agnhostImage(ctx context.Context) (v1.Image, error) {
	return m.agnhostVersion(ctx, "2.66.1")
}

func (m *imageBuilder) agnhostOldImage(ctx context.Context) (v1.Image, error) {
	return m.agnhostVersion(ctx, "2.55")
}

func (m *imageBuilder) agnhostVersion(ctx context.Context, version string) (v1.Image, error) {
	base, err := m.baseLayer(ctx)
	if err != nil {
		return nil, err
	}
	layer, err := m.agnhostLayer(ctx)
	if err != nil {
		return nil, err
	}
	return compose(v1.Config{Env: []string{images.SearchPath}, Labels: map[string]string{"version": version},
		Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}}, []v1.Layer{base, layer})
}

func (m *imageBuilder) kittenImage(ctx context.Context) (v1.Image, error) {
	return m.petImage(ctx, "kitten")
}
func (m *imageBuilder) nautilusImage(ctx context.Context) (v1.Image, error) {
	return m.petImage(ctx, "nautilus")
}

// petImage builds an image of agnhost that serves two files.
func (m *imageBuilder) petImage(ctx context.Context, name string) (v1.Image, error) {
	base, err := m.baseLayer(ctx)
	if err != nil {
		return nil, err
	}
	layer, err := m.agnhostLayer(ctx)
	if err != nil {
		return nil, err
	}
	picture, err := m.data(name+".jpg", name+".jpg")
	if err != nil {
		return nil, err
	}
	text, err := m.data(name+".json", "data.json")
	if err != nil {
		return nil, err
	}
	return compose(v1.Config{Env: []string{images.SearchPath}, Entrypoint: []string{"/agnhost"},
		Cmd: []string{"test-webserver"}}, []v1.Layer{base, layer}, picture, text)
}

// agnhostLayer has agnhost, the tools that tests call, and the image of its fake registry.
func (m *imageBuilder) agnhostLayer(ctx context.Context) (v1.Layer, error) {
	if m.agnhost != nil {
		return m.agnhost, nil
	}
	program, err := images.File(m.programs.path("agnhost"), "agnhost", 0o755)
	if err != nil {
		return nil, err
	}
	entries := []images.Entry{program,
		{Name: "agnhost-2", Mode: 0o777, Link: "agnhost"},
		{Name: "bin/bash", Mode: 0o777, Link: "../usr/bin/bash"},
		{Name: "uploads/", Mode: 0o755},
		{Name: "home/user-defined-in-image/", Mode: 0o755},
		{Name: "etc/os-release", Mode: 0o644, Data: []byte(agnhostRelease)},
		{Name: "etc/passwd", Mode: 0o644, Data: []byte(agnhostUsers)},
		{Name: "etc/group", Mode: 0o644, Data: []byte(agnhostGroups)},
	}
	for _, name := range []string{"localhost.crt", "localhost.key"} {
		entry, err := m.data(name, name)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	tools, err := images.HostPrograms(ctx, "bash", "curl", "ss", "ipcs", "nc", "dig", "getent")
	if err != nil {
		return nil, err
	}
	served, err := m.servedImage(ctx)
	if err != nil {
		return nil, err
	}
	m.agnhost, err = images.Layer(append(append(entries, tools...), served...)...)
	return m.agnhost, err
}

// servedImage has the files of pause:testing for agnhost's fake registry: a file for the tag with
// the digest, and each manifest and blob at sha256/AB/ABCD…/data.
func (m *imageBuilder) servedImage(ctx context.Context) ([]images.Entry, error) {
	const dir = "var/registry/pause/"
	image, err := m.pauseImage(ctx)
	if err != nil {
		return nil, err
	}
	digest, err := image.Digest()
	if err != nil {
		return nil, fmt.Errorf("digest pause: %w", err)
	}
	manifest, err := image.RawManifest()
	if err != nil {
		return nil, fmt.Errorf("read manifest of pause: %w", err)
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read configuration of pause: %w", err)
	}
	configDigest, err := image.ConfigName()
	if err != nil {
		return nil, fmt.Errorf("digest configuration of pause: %w", err)
	}
	entries := []images.Entry{
		{Name: dir + "manifests/testing", Mode: 0o644, Data: []byte(digest.String() + "\n")},
		stored(dir+"manifests/", digest, manifest),
		stored(dir+"blobs/", configDigest, config),
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, fmt.Errorf("read layers of pause: %w", err)
	}
	for _, layer := range layers {
		entry, err := storedLayer(dir+"blobs/", layer)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

func stored(dir string, digest v1.Hash, data []byte) images.Entry {
	return images.Entry{Name: dir + digest.Algorithm + "/" + digest.Hex[:2] + "/" + digest.Hex + "/data", Mode: 0o644, Data: data}
}

func storedLayer(dir string, layer v1.Layer) (images.Entry, error) {
	digest, err := layer.Digest()
	if err != nil {
		return images.Entry{}, fmt.Errorf("digest a layer of pause: %w", err)
	}
	content, err := layer.Compressed()
	if err != nil {
		return images.Entry{}, fmt.Errorf("read a layer of pause: %w", err)
	}
	defer content.Close()
	data, err := io.ReadAll(content)
	if err != nil {
		return images.Entry{}, fmt.Errorf("read a layer of pause: %w", err)
	}
	return stored(dir, digest, data), nil
}
