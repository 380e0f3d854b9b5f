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
	return single(v1.Config{User: "65535:65535", Entrypoint: []string{"/pause"}},
		Entry{Name: "pause", Mode: 0o755, Data: data})
}

func busyboxImage(ctx context.Context, program string) (v1.Image, error) {
	entries, err := BusyboxEntries(ctx, program)
	if err != nil {
		return nil, err
	}
	return single(v1.Config{Env: []string{SearchPath}, Cmd: []string{"sh"}}, entries...)
}

// SearchPath is the PATH variable of the images.
const SearchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// BusyboxEntries are the files of a root directory with busybox, a link per applet, and users.
func BusyboxEntries(ctx context.Context, program string) ([]Entry, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read busybox: %w", err)
	}
	applets, err := exec.CommandContext(ctx, program, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("list applets of busybox: %w", err)
	}
	entries := []Entry{
		{Name: "bin/", Mode: 0o755},
		{Name: "bin/busybox", Mode: 0o755, Data: data},
		{Name: "etc/", Mode: 0o755},
		{Name: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n")},
		{Name: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\nnogroup:x:65534:\n")},
		{Name: "root/", Mode: 0o700},
		{Name: "tmp/", Mode: 0o1777},
	}
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet != "busybox" {
			entries = append(entries, Entry{Name: "bin/" + applet, Mode: 0o777, Link: "busybox"})
		}
	}
	return entries, nil
}

// Entry is a file of a layer: a directory if its name ends in a slash, a symbolic link if Link is
// set. A later entry replaces an earlier one of the same name.
type Entry struct {
	Name string
	Mode int64
	Data []byte
	Link string
}

func (e Entry) header() *tar.Header {
	// A fixed time keeps the image's digest reproducible.
	h := &tar.Header{Name: e.Name, Mode: e.Mode, Typeflag: tar.TypeReg, Size: int64(len(e.Data)), ModTime: time.Unix(0, 0)}
	switch {
	case e.Link != "":
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.Link
	case strings.HasSuffix(e.Name, "/"):
		h.Typeflag = tar.TypeDir
	}
	return h
}

// single builds an image of one layer.
func single(config v1.Config, entries ...Entry) (v1.Image, error) {
	layer, err := Layer(entries...)
	if err != nil {
		return nil, err
	}
	return Compose(config, layer)
}

// Layer builds a layer of the entries.
func Layer(entries ...Entry) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, e := range entries {
		if err := w.WriteHeader(e.header()); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.Name, err)
		}
		if _, err := w.Write(e.Data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.Name, err)
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
	return layer, nil
}

// Compose builds an image for the host's architecture from the layers, lowest first.
func Compose(config v1.Config, layers ...v1.Layer) (v1.Image, error) {
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, fmt.Errorf("append layers: %w", err)
	}
	return mutate.ConfigFile(img, configFile(img, config))
}

// configFile returns the image's configuration file with its layer IDs and config.
func configFile(img v1.Image, config v1.Config) *v1.ConfigFile {
	file, err := img.ConfigFile()
	if err != nil { // an image made above always has one
		panic(err)
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Config = runtime.GOARCH, "linux", config
	return file
}
