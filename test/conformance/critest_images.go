package conformance

import (
	"context"
	"fmt"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"swiftlet/test/images"
)

const (
	critestSuite    = Registry + "/e2e-test-images/"
	critestOwn      = "gcr.io/k8s-staging-cri-tools/"
	critestUsers    = "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33::/var/www:/bin/false\nnobody:x:65534:65534:nobody:/home:/bin/false\ndefault-user:x:1000:1000::/home:/bin/sh\n"
	critestGroups   = "root:x:0:\nwww-data:x:33:\nnogroup:x:65534:\ndefault-user:x:1000:\ngroup-defined-in-image:x:50000:default-user\n"
	critestHostPort = 12003 // port of the web server with host network
)

// CritestRegistries are the registries of critest's images.
var CritestRegistries = []string{Registry, "gcr.io", "k8s.gcr.io"}

// CritestImages builds the images that critest pulls, by name. One image is missing: critest pulls
// it by digest, and it cannot be rebuilt with that digest. pause is the path of the bed's pause
// program.
func (p *Programs) CritestImages(ctx context.Context, pause string) (map[string]v1.Image, error) {
	m := &imageBuilder{programs: p, pause: pause}
	all := map[string]v1.Image{}
	recipes := map[string]func() (v1.Image, error){
		critestSuite + "busybox:1.29-2":                            func() (v1.Image, error) { return m.critest(ctx, "busybox", "") },
		critestSuite + "nonewprivs:1.3":                            func() (v1.Image, error) { return m.nonewprivsImage(ctx) },
		critestSuite + "httpd:2.4.39-4":                            func() (v1.Image, error) { return m.httpd(ctx) },
		critestSuite + "nginx:1.14-2":                              func() (v1.Image, error) { return m.nginx(ctx, "1.14-2", "/var/run/nginx.pid", 80) },
		critestOwn + "hostnet-nginx-" + runtime.GOARCH + ":latest": func() (v1.Image, error) { return m.nginx(ctx, "hostnet", "/tmp/nginx.pid", critestHostPort) },
		Registry + "/pause:3.9":                                    func() (v1.Image, error) { return m.pauseOf("3.9") },
		"k8s.gcr.io/pause:3.9":                                     func() (v1.Image, error) { return m.pauseOf("3.9") },
	}
	for name, user := range map[string]string{
		"test-image-user-uid": "1002", "test-image-user-username": "www-data",
		"test-image-user-uid-group": "1003:1004", "test-image-user-username-group": "www-data:1004",
		"test-image-predefined-group": "1000",
		"test-image-latest":           "", "test-image-1": "", "test-image-2": "", "test-image-3": "",
	} {
		recipes[critestOwn+name+":latest"] = func() (v1.Image, error) { return m.critest(ctx, name, user) }
	}
	for name, tags := range map[string][]string{"test-image-tag": {"test", "all"}, "test-image-tags": {"1", "2", "3"}} {
		for _, tag := range tags { // the same image
			recipes[critestOwn+name+":"+tag] = func() (v1.Image, error) { return m.critest(ctx, name, "") }
		}
	}
	for name, recipe := range recipes {
		image, err := recipe()
		if err != nil {
			return nil, fmt.Errorf("build image %s: %w", name, err)
		}
		all[name] = image
	}
	return all, nil
}

// critest builds an image of busybox with a file of that name and a default user.
func (m *imageBuilder) critest(ctx context.Context, name, user string) (v1.Image, error) {
	base, err := m.baseLayer(ctx)
	if err != nil {
		return nil, err
	}
	// A test mounts over ls. If ls were a link, the test would hide all of busybox.
	ls, err := images.File(m.programs.path("busybox"), "bin/ls", 0o755)
	if err != nil {
		return nil, err
	}
	return compose(v1.Config{Env: []string{images.SearchPath}, Cmd: []string{"sh"}, User: user}, []v1.Layer{base},
		ls,
		images.Entry{Name: name, Mode: 0o644},
		images.Entry{Name: "etc/passwd", Mode: 0o644, Data: []byte(critestUsers)},
		images.Entry{Name: "etc/group", Mode: 0o644, Data: []byte(critestGroups)})
}

// httpd is the httpd of busybox. It prints its name, like the original image.
func (m *imageBuilder) httpd(ctx context.Context) (v1.Image, error) {
	base, err := m.baseLayer(ctx)
	if err != nil {
		return nil, err
	}
	return compose(v1.Config{Env: []string{images.SearchPath}, Cmd: []string{"sh", "-c", "echo httpd; exec httpd -f -p 80 -h /htdocs"}},
		[]v1.Layer{base}, images.Entry{Name: "htdocs/index.html", Mode: 0o644, Data: []byte("It works!\n")})
}

// pauseOf builds a pause image that differs from the node's sandbox image, whose tags tests count.
func (m *imageBuilder) pauseOf(version string) (v1.Image, error) {
	program, err := images.File(m.pause, "pause", 0o755)
	if err != nil {
		return nil, err
	}
	return compose(v1.Config{User: "65535:65535", Labels: map[string]string{"version": version}, Entrypoint: []string{"/pause"}}, nil, program)
}
