package standalone

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/image"
	"swiftlet/test/poll"
)

// privateRegistry serves over TLS, with an authority of its own, to those who know the password.
type privateRegistry struct {
	*httptest.Server
	host string
	slow *atomic.Pointer[chan struct{}] // holds the end of large answers back until it is closed
}

// held is a response of which what follows the first 3 MB is held back.
type held struct {
	http.ResponseWriter
	written int
	until   chan struct{}
}

func (h *held) Write(p []byte) (int, error) {
	total := 0
	for total < len(p) {
		if h.written >= 3_000_000 {
			h.ResponseWriter.(http.Flusher).Flush()
			<-h.until
		}
		n, err := h.ResponseWriter.Write(p[total:min(len(p), total+100_000)])
		total, h.written = total+n, h.written+n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func startRegistry(t *testing.T) privateRegistry {
	t.Helper()
	slow := &atomic.Pointer[chan struct{}]{}
	content := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "reader" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
			return
		}
		if until := slow.Load(); until != nil {
			w = &held{ResponseWriter: w, until: *until}
		}
		content.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	// A name of its certificate: containerd does not verify the certificates of loopback addresses.
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	addHost(t, address.Hostname(), "registry.example.com")
	host := "registry.example.com:" + address.Port()
	server.URL = "https://" + host
	return privateRegistry{server, host, slow}
}

// addHost adds a name to /etc/hosts of the box.
func addHost(t *testing.T, address, name string) {
	t.Helper()
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte(address+" "+name+"\n127.0.0.1 localhost\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(hosts, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount("/etc/hosts", unix.MNT_DETACH) })
}

// push stores an image of one layer.
func (r privateRegistry) push(t *testing.T, path string, size int64) {
	t.Helper()
	layer, err := random.Layer(size, "application/vnd.docker.image.rootfs.diff.tar.gzip")
	if err != nil {
		t.Fatal(err)
	}
	img := withLayer(t, layer)
	tag, err := name.NewTag(r.host + "/" + path)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, img, remote.WithTransport(r.Client().Transport), remote.WithAuth(&authn.Basic{Username: "reader", Password: "secret"})); err != nil {
		t.Fatal(err)
	}
}

// withLayer is an image for this machine.
func withLayer(t *testing.T, layer v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{Architecture: runtime.GOARCH, OS: "linux"})
	if err == nil {
		img, err = mutate.AppendLayers(img, layer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// config writes a directory for --registry-config.
func (r privateRegistry) config(t *testing.T, hosts ...string) string {
	t.Helper()
	dir := t.TempDir()
	var auths []string
	for _, h := range hosts {
		auths = append(auths, fmt.Sprintf("%q:{\"auth\":%q}", h, base64.StdEncoding.EncodeToString([]byte("reader:secret"))))
	}
	writeFiles(t, dir, map[string]string{
		"config.json":      `{"auths":{` + strings.Join(auths, ",") + `}}`,
		r.host + "/ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})),
	})
	return dir
}

// pull pulls an image as the agent does, with the credentials of the node.
func (m *machine) pull(ref, repository string) error {
	m.t.Helper()
	keyring, err := image.NodeKeyring(m.cfg.Paths.AgentRoot(), "")
	if err != nil {
		m.t.Fatal(err)
	}
	var auth *runtimeapi.AuthConfig
	for _, c := range keyring.Lookup(repository) {
		auth = c.Auth
	}
	_, err = m.cri.PullImage(m.t.Context(), &runtimeapi.ImageSpec{Image: ref}, auth, nil)
	return err
}

// Images are pulled from a registry with a private authority and a password, and from a mirror of another one.
// Archives are loaded.
func TestRegistries(t *testing.T) {
	if !box(t) {
		return
	}
	r := startRegistry(t)
	r.push(t, "team/app:1", 100_000)
	r.push(t, "library/busybox:1", 100_000)
	r.push(t, "team/slow:1", 5_000_000)
	m := newMachine(t)
	m.cfg.Registries = Registries{Mirrors: []Mirror{{"docker.io", r.URL}}}
	m.cfg.Keep = true
	down := m.up(idleAgent)
	if err := m.pull(r.host+"/team/app:1", r.host+"/team/app"); err == nil || !strings.Contains(err.Error(), "x509") {
		t.Errorf("without the authority: %v", err)
	}
	if err := down(); err != nil {
		t.Fatal(err)
	}
	m.cfg.Registries.Config = r.config(t, r.host, "docker.io")
	m.cfg.Keep = false
	down = m.up(idleAgent)
	for ref, repository := range map[string]string{r.host + "/team/app:1": r.host + "/team/app", "docker.io/library/busybox:1": "docker.io/library/busybox"} {
		if err := m.pull(ref, repository); err != nil {
			toml, _ := os.ReadFile(filepath.Join(m.cfg.Paths.registries(), "docker.io", "hosts.toml"))
			config, _ := os.ReadFile(m.cfg.Paths.containerdConfig())
			t.Errorf("pull %s: %v\n%s\n%s\n%s", ref, err, toml, config, m.runtimeLog())
		}
	}
	if _, err := m.cri.PullImage(t.Context(), &runtimeapi.ImageSpec{Image: r.host + "/team/app:1"}, nil, nil); err == nil {
		t.Error("pulled without credentials")
	}
	m.watchPull(r)
	m.loadImages()
	if err := down(); err != nil {
		t.Fatal(err)
	}
	if exists(m.cfg.Paths.run) {
		t.Errorf("%s still exists", m.cfg.Paths.run)
	}
}

// watchPull pulls an image whose layer stops half way, and reads how far it is from containerd's files.
func (m *machine) watchPull(r privateRegistry) {
	m.t.Helper()
	until := make(chan struct{})
	r.slow.Store(&until)
	ended := make(chan error, 1)
	go func() { ended <- m.pull(r.host+"/team/slow:1", r.host+"/team/slow") }()
	release := sync.OnceFunc(func() { close(until) })
	defer release()
	p := newPulls(m.cfg.Paths)
	poll.Check(m.t, "see a part of the layer", func() error {
		progress, running := p.read(time.Now())
		if !running || progress.bytes < 500_000 || progress.total < 5_000_000 || progress.bytes > 3_500_000 {
			return fmt.Errorf("%w: %+v", errNotYet, progress)
		}
		return nil
	})
	release()
	if err := <-ended; err != nil {
		m.t.Error(err)
	}
	if _, running := p.read(time.Now()); running {
		m.t.Error("the pull is seen after its end")
	}
}

// loadImages loads archives of both formats, and ones that cannot be loaded.
func (m *machine) loadImages() {
	t := m.t
	t.Helper()
	layer, err := random.Layer(50_000, "application/vnd.docker.image.rootfs.diff.tar.gzip")
	if err != nil {
		t.Fatal(err)
	}
	img := withLayer(t, layer)
	docker := filepath.Join(t.TempDir(), "docker.tar")
	one, two := name.MustParseReference("example.com/one:1").(name.Tag), name.MustParseReference("example.com/two:1").(name.Tag)
	if err := tarball.MultiWriteToFile(docker, map[name.Tag]v1.Image{one: img, two: img}); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken.tar")
	if err := os.WriteFile(broken, []byte("not an archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cfg, deps := m.cfg, Deps{Clock: m.clock, Out: &out}
	if err := LoadImages(t.Context(), cfg, deps, m.cri, []string{docker, filepath.Join(images(), "pause.tar")}); err != nil {
		t.Errorf("load: %v", err)
	}
	for _, want := range []string{"loaded example.com/one:1", "loaded example.com/two:1", "loaded registry.k8s.io/pause:3.10"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
	if err := LoadImages(t.Context(), cfg, deps, m.cri, []string{broken}); err == nil || !strings.Contains(err.Error(), "load "+broken+": ") {
		t.Errorf("a broken archive: %v", err)
	}
	if err := RemoveImages(t.Context(), cfg, deps, m.cri, []string{"example.com/one:1"}); err != nil {
		t.Errorf("remove: %v", err)
	}
	if err := RemoveImages(t.Context(), cfg, deps, m.cri, []string{"example.com/none:1"}); err == nil || !strings.Contains(err.Error(), "example.com/none:1") {
		t.Errorf("remove of a missing image: %v", err)
	}
	out.Reset()
	if err := ListImages(t.Context(), cfg, deps, m.cri); err != nil || strings.Contains(out.String(), "example.com/one") || !strings.Contains(out.String(), "example.com/two:1") {
		t.Errorf("list: %v\n%s", err, out.String())
	}
}
