package images

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func pauseImage(program string) (v1.Image, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read pause: %w", err)
	}
	return image(v1.Config{User: "65535:65535", Entrypoint: []string{"/pause"}},
		entry{name: "pause", mode: 0o755, data: data})
}

func busyboxImage(ctx context.Context, program string) (v1.Image, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read busybox: %w", err)
	}
	applets, err := exec.CommandContext(ctx, program, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("list applets of busybox: %w", err)
	}
	entries := []entry{
		{name: "bin/", mode: 0o755},
		{name: "bin/busybox", mode: 0o755, data: data},
		{name: "etc/", mode: 0o755},
		{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n")},
		{name: "etc/group", mode: 0o644, data: []byte("root:x:0:\nnogroup:x:65534:\n")},
		{name: "root/", mode: 0o700},
		{name: "tmp/", mode: 0o1777},
	}
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet != "busybox" {
			entries = append(entries, entry{name: "bin/" + applet, mode: 0o777, link: "busybox"})
		}
	}
	return image(v1.Config{
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Cmd: []string{"sh"},
	}, entries...)
}

// entry is one file of a layer: a directory when its name ends in a slash, a symbolic
// link when link is set.
type entry struct {
	name string
	mode int64
	data []byte
	link string
}

func (e entry) header() *tar.Header {
	// A fixed time keeps the image's digest the same for the same contents.
	h := &tar.Header{Name: e.name, Mode: e.mode, Typeflag: tar.TypeReg, Size: int64(len(e.data)), ModTime: time.Unix(0, 0)}
	switch {
	case e.link != "":
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
	case strings.HasSuffix(e.name, "/"):
		h.Typeflag = tar.TypeDir
	}
	return h
}

// image puts the entries into the one layer of an image for this machine.
func image(config v1.Config, entries ...entry) (v1.Image, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, e := range entries {
		if err := w.WriteHeader(e.header()); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.name, err)
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack layer: %w", err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	})
	if err != nil {
		return nil, fmt.Errorf("make layer: %w", err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("append layer: %w", err)
	}
	return mutate.ConfigFile(img, configFile(img, config))
}

// configFile keeps the layer ids that the image has and says what to run, and where.
func configFile(img v1.Image, config v1.Config) *v1.ConfigFile {
	file, err := img.ConfigFile()
	if err != nil { // an image made above always has one
		panic(err)
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Config = runtime.GOARCH, "linux", config
	return file
}
