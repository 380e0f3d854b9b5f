package conformance

import (
	"context"
	"fmt"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"swiftlet/test/images"
)

// imageRecipe is an image and how to build it.
type imageRecipe struct {
	path string
	make func(*imageBuilder, context.Context) (v1.Image, error)
}

// recipes lists the images under the names and tags of the suite's test/utils/image.
var recipes = []imageRecipe{
	{"pause:3.10.2", (*imageBuilder).pauseImage},
	{"e2e-test-images/busybox:1.37.0-2", (*imageBuilder).busyboxImage},
	{"e2e-test-images/agnhost:2.66.1", (*imageBuilder).agnhostImage},
	{"e2e-test-images/agnhost:2.55", (*imageBuilder).agnhostOldImage},
	{"e2e-test-images/kitten:1.8", (*imageBuilder).kittenImage},
	{"e2e-test-images/nautilus:1.8", (*imageBuilder).nautilusImage},
	{"e2e-test-images/nonewprivs:1.4", (*imageBuilder).nonewprivsImage},
	{"e2e-test-images/nonroot:1.5", (*imageBuilder).nonrootImage},
	{"e2e-test-images/glibc-dns-testing:2.1.1", (*imageBuilder).glibcImage},
	{"e2e-test-images/sample-device-plugin:1.7", (*imageBuilder).devicePluginImage},
	{"e2e-test-images/sample-device-plugin:1.8.0", (*imageBuilder).devicePluginImage}, // used by the suite's manifests
	{"e2e-test-images/resource-consumer:1.14", (*imageBuilder).consumerImage},
	{"e2e-test-images/nginx:1.27.0-2", (*imageBuilder).nginxImage},
	{"e2e-test-images/nginx:1.28.0-2", (*imageBuilder).nginxNewImage},
}

// imageBuilder builds images. Shared layers are built once.
type imageBuilder struct {
	programs *Programs
	pause    string

	base    v1.Layer // busybox
	agnhost v1.Layer
}

func (m *imageBuilder) pauseImage(context.Context) (v1.Image, error) {
	program, err := images.File(m.pause, "pause", 0o755)
	if err != nil {
		return nil, err
	}
	return compose(v1.Config{User: "65535:65535", Entrypoint: []string{"/pause"}}, nil, program)
}

func (m *imageBuilder) busyboxImage(ctx context.Context) (v1.Image, error) {
	base, err := m.baseLayer(ctx)
	if err != nil {
		return nil, err
	}
	return compose(v1.Config{Env: []string{images.SearchPath}, Cmd: []string{"sh"}}, []v1.Layer{base})
}

// nonrootImage has a default user that is not root.
func (m *imageBuilder) nonrootImage(ctx context.Context) (v1.Image, error) {
	base, err := m.baseLayer(ctx)
	if err != nil {
		return nil, err
	}
	return compose(v1.Config{Env: []string{images.SearchPath}, Cmd: []string{"sh"}, User: "1234"}, []v1.Layer{base})
}

// nonewprivsImage has a setuid program.
func (m *imageBuilder) nonewprivsImage(ctx context.Context) (v1.Image, error) {
	base, err := m.baseLayer(ctx)
	if err != nil {
		return nil, err
	}
	program, err := images.File(m.programs.path("nnp"), "usr/local/bin/nnp", 0o6755)
	if err != nil {
		return nil, err
	}
	return compose(v1.Config{Env: []string{images.SearchPath}, Cmd: []string{"nnp"}}, []v1.Layer{base}, program)
}

// glibcImage has Debian's hostname, which uses the resolver; that of busybox does not.
func (m *imageBuilder) glibcImage(ctx context.Context) (v1.Image, error) {
	base, err := m.baseLayer(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := images.HostPrograms(ctx, "hostname", "getent", "dig")
	if err != nil {
		return nil, err
	}
	entries = append(entries,
		images.Entry{Name: "bin/hostname", Mode: 0o777, Link: "../usr/bin/hostname"},
		images.Entry{Name: "etc/nsswitch.conf", Mode: 0o644, Data: []byte("passwd: files\ngroup: files\nhosts: files dns\n")})
	return compose(v1.Config{Env: []string{images.SearchPath}, Cmd: []string{"sh"}}, []v1.Layer{base}, entries...)
}

// consumerImage uses CPU when it is asked to. It has no program that uses memory, which is not part of the suite.
func (m *imageBuilder) consumerImage(ctx context.Context) (v1.Image, error) {
	base, err := m.baseLayer(ctx)
	if err != nil {
		return nil, err
	}
	server, err := images.File(m.programs.path("consumer"), "consumer", 0o755)
	if err != nil {
		return nil, err
	}
	consumer, err := images.File(m.programs.path("consume-cpu"), "consume-cpu/consume-cpu", 0o755)
	if err != nil {
		return nil, err
	}
	return compose(v1.Config{Env: []string{images.SearchPath}, Entrypoint: []string{"/consumer"}}, []v1.Layer{base}, server, consumer)
}

func (m *imageBuilder) devicePluginImage(context.Context) (v1.Image, error) {
	const name = "sampledeviceplugin"
	program, err := images.File(m.programs.path(name), name, 0o755)
	if err != nil {
		return nil, err
	}
	tmp := images.Entry{Name: "tmp/", Mode: 0o1777} // for its devices
	return compose(v1.Config{Entrypoint: []string{"/" + name, "-alsologtostderr"}}, nil, program, tmp)
}

// nginxConfig has parameters for the PID file and the port.
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

func (m *imageBuilder) nginxImage(ctx context.Context) (v1.Image, error) {
	return m.nginx(ctx, "1.27.0-2", "/tmp/nginx.pid", 80)
}

func (m *imageBuilder) nginxNewImage(ctx context.Context) (v1.Image, error) {
	return m.nginx(ctx, "1.28.0-2", "/tmp/nginx.pid", 80)
}

// nginx builds an image of Debian's nginx, whatever the tag says. The label makes digests differ.
func (m *imageBuilder) nginx(ctx context.Context, tag, pid string, port int) (v1.Image, error) {
	base, err := m.baseLayer(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := images.WithLibraries(ctx, m.programs.path("nginx"), "usr/sbin/nginx")
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

func (m *imageBuilder) baseLayer(ctx context.Context) (v1.Layer, error) {
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

// data is a file of the suite.
func (m *imageBuilder) data(name, target string) (images.Entry, error) {
	return images.File(m.programs.path(filepath.Join("files", name)), target, 0o644)
}

// compose builds an image of the layers and, if there are entries, a layer of them.
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
