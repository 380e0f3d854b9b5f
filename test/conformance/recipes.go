package conformance

import (
	"context"
	"fmt"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"swiftlet/test/images"
)

// recipeOf says how one image is made.
type recipeOf struct {
	path string
	make func(*maker, context.Context) (v1.Image, error)
}

// recipes lists the images under the names and tags of the suite's test/utils/image.
var recipes = []recipeOf{
	{"pause:3.10.2", (*maker).pauseImage},
	{"e2e-test-images/busybox:1.37.0-2", (*maker).busyboxImage},
	{"e2e-test-images/agnhost:2.66.1", (*maker).agnhostImage},
	{"e2e-test-images/agnhost:2.55", (*maker).agnhostBefore},
	{"e2e-test-images/kitten:1.8", (*maker).kittenImage},
	{"e2e-test-images/nautilus:1.8", (*maker).nautilusImage},
	{"e2e-test-images/nonewprivs:1.4", (*maker).nonewprivsImage},
	{"e2e-test-images/nonroot:1.5", (*maker).nonrootImage},
	{"e2e-test-images/glibc-dns-testing:2.1.1", (*maker).glibcImage},
	{"e2e-test-images/sample-device-plugin:1.7", (*maker).devicePluginImage},
	{"e2e-test-images/sample-device-plugin:1.8.0", (*maker).devicePluginImage}, // of the suite's manifests
	{"e2e-test-images/nginx:1.27.0-2", (*maker).nginxImage},
	{"e2e-test-images/nginx:1.28.0-2", (*maker).nginxNewImage},
}

// maker makes images; layers that several share are made once.
type maker struct {
	programs *Programs
	pause    string

	base    v1.Layer // busybox
	agnhost v1.Layer
}

func (m *maker) pauseImage(context.Context) (v1.Image, error) {
	program, err := file(m.pause, "pause", 0o755)
	if err != nil {
		return nil, err
	}
	return compose(v1.Config{User: "65535:65535", Entrypoint: []string{"/pause"}}, nil, program)
}

func (m *maker) busyboxImage(ctx context.Context) (v1.Image, error) {
	base, err := m.baseLayer(ctx)
	if err != nil {
		return nil, err
	}
	return compose(v1.Config{Env: []string{images.SearchPath}, Cmd: []string{"sh"}}, []v1.Layer{base})
}

// nonrootImage has a default user, which is all that it is for.
func (m *maker) nonrootImage(ctx context.Context) (v1.Image, error) {
	base, err := m.baseLayer(ctx)
	if err != nil {
		return nil, err
	}
	return compose(v1.Config{Env: []string{images.SearchPath}, Cmd: []string{"sh"}, User: "1234"}, []v1.Layer{base})
}

// nonewprivsImage has a program that runs as root whoever starts it, unless it is forbidden.
func (m *maker) nonewprivsImage(ctx context.Context) (v1.Image, error) {
	base, err := m.baseLayer(ctx)
	if err != nil {
		return nil, err
	}
	program, err := file(m.programs.path("nnp"), "usr/local/bin/nnp", 0o6755)
	if err != nil {
		return nil, err
	}
	return compose(v1.Config{Env: []string{images.SearchPath}, Cmd: []string{"nnp"}}, []v1.Layer{base}, program)
}

// glibcImage has Debian's hostname, which asks the resolver where busybox's does not.
func (m *maker) glibcImage(ctx context.Context) (v1.Image, error) {
	base, err := m.baseLayer(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := debian(ctx, "hostname", "getent")
	if err != nil {
		return nil, err
	}
	entries = append(entries,
		images.Entry{Name: "bin/hostname", Mode: 0o777, Link: "../usr/bin/hostname"},
		images.Entry{Name: "etc/nsswitch.conf", Mode: 0o644, Data: []byte("passwd: files\ngroup: files\nhosts: files dns\n")})
	return compose(v1.Config{Env: []string{images.SearchPath}, Cmd: []string{"sh"}}, []v1.Layer{base}, entries...)
}

func (m *maker) devicePluginImage(context.Context) (v1.Image, error) {
	const name = "sampledeviceplugin"
	program, err := file(m.programs.path(name), name, 0o755)
	if err != nil {
		return nil, err
	}
	tmp := images.Entry{Name: "tmp/", Mode: 0o1777} // where its devices are
	return compose(v1.Config{Entrypoint: []string{"/" + name, "-alsologtostderr"}}, nil, program, tmp)
}

// nginxConfig has places for the file of its process id and the port.
const nginxConfig = `user root;
worker_processes 1;
error_log /dev/stderr;
pid %s;
events {}
http {
  access_log /dev/stdout;
  server { listen %d; root /usr/share/nginx/html; }
}
`

func (m *maker) nginxImage(ctx context.Context) (v1.Image, error) {
	return m.nginx(ctx, "1.27.0-2", "/tmp/nginx.pid", 80)
}

func (m *maker) nginxNewImage(ctx context.Context) (v1.Image, error) {
	return m.nginx(ctx, "1.28.0-2", "/tmp/nginx.pid", 80)
}

// nginx is Debian's, whatever the suite calls it; the label makes two images of it.
func (m *maker) nginx(ctx context.Context, tag, pid string, port int) (v1.Image, error) {
	base, err := m.baseLayer(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := linked(ctx, m.programs.path("nginx"), "usr/sbin/nginx")
	if err != nil {
		return nil, err
	}
	entries = append(entries,
		images.Entry{Name: "etc/nginx/", Mode: 0o755},
		images.Entry{Name: "etc/nginx/nginx.conf", Mode: 0o644, Data: fmt.Appendf(nil, nginxConfig, pid, port)},
		images.Entry{Name: "usr/share/nginx/html/index.html", Mode: 0o644, Data: []byte("Welcome to nginx!\n")},
		images.Entry{Name: "var/log/nginx/", Mode: 0o755},
		images.Entry{Name: "var/run/", Mode: 0o755},
		images.Entry{Name: "var/lib/nginx/", Mode: 0o755})
	return compose(v1.Config{Env: []string{images.SearchPath}, Labels: map[string]string{"tag": tag},
		Cmd: []string{"nginx", "-g", "daemon off;"}}, []v1.Layer{base}, entries...)
}

func (m *maker) baseLayer(ctx context.Context) (v1.Layer, error) {
	if m.base != nil {
		return m.base, nil
	}
	entries, err := images.BusyboxEntries(ctx, m.programs.path("busybox"))
	if err != nil {
		return nil, err
	}
	entries = append(entries, images.Entry{Name: "home/", Mode: 0o755}, images.Entry{Name: "var/", Mode: 0o755})
	m.base, err = images.Layer(entries...)
	return m.base, err
}

// data is one of the suite's own files.
func (m *maker) data(name, target string) (images.Entry, error) {
	return file(m.programs.path(filepath.Join("files", name)), target, 0o644)
}

// compose puts the entries, if there are any, upon the layers.
func compose(config v1.Config, layers []v1.Layer, entries ...images.Entry) (v1.Image, error) {
	if len(entries) > 0 {
		top, err := images.Layer(entries...)
		if err != nil {
			return nil, err
		}
		layers = append(layers, top)
	}
	return images.Compose(config, layers...)
}
