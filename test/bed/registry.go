package bed

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Registry serves images to the nodes over TLS, with a certificate of the bed's authority.
type Registry struct {
	Host     string // address and port: the registry part of image names
	User     string // empty: no password needed
	Password string

	interceptor atomic.Pointer[func(http.Handler) http.Handler]

	ca     *authority
	server *http.Server
	done   chan error // result of serving
}

// StartRegistry starts a registry on the bed's address. With a user it requires the password. The
// caller closes it.
func (b *Bed) StartRegistry(user, password string) (*Registry, error) {
	ca, err := b.authority()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(b.slot.gateway(), "0"))
	if err != nil {
		return nil, fmt.Errorf("start registry: %w", err)
	}
	// A unique file name: two registries may start at the same time.
	pair, err := ca.serving(fmt.Sprintf("registry-%d", listener.Addr().(*net.TCPAddr).Port), b.slot.gateway())
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	quiet := log.New(io.Discard, "", 0)
	r := &Registry{Host: listener.Addr().String(), User: user, Password: password, ca: ca, done: make(chan error, 1)}
	r.server = &http.Server{
		Handler:           r.intercepted(r.requirePassword(registry.New(registry.Logger(quiet)))),
		ErrorLog:          quiet, // tests provoke TLS errors
		ReadHeaderTimeout: 10 * time.Second,
	}
	go func() { r.done <- r.server.ServeTLS(listener, pair.cert, pair.key) }()
	return r, nil
}

// Intercept wraps the registry's handler; nil removes the wrapper.
func (r *Registry) Intercept(interceptor func(http.Handler) http.Handler) {
	r.interceptor.Store(&interceptor)
}

func (r *Registry) intercepted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		handler := next
		if interceptor := r.interceptor.Load(); interceptor != nil && *interceptor != nil {
			handler = (*interceptor)(next)
		}
		handler.ServeHTTP(w, request)
	})
}

// requirePassword requires basic authentication if the registry has a user.
func (r *Registry) requirePassword(next http.Handler) http.Handler {
	if r.User == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		user, password, _ := request.BasicAuth()
		if user != r.User || subtle.ConstantTimeCompare([]byte(password), []byte(r.Password)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="bed"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, request)
	})
}

// Push stores an image under a path such as "team/app:1" and returns its full name.
func (r *Registry) Push(ctx context.Context, path string, image v1.Image) (string, error) {
	tag, err := name.NewTag(r.Host + "/" + path)
	if err != nil {
		return "", fmt.Errorf("push image: %w", err)
	}
	client, err := r.ca.httpClient()
	if err != nil {
		return "", err
	}
	defer client.CloseIdleConnections()
	auth := authn.Anonymous
	if r.User != "" {
		auth = &authn.Basic{Username: r.User, Password: r.Password}
	}
	if err := remote.Write(tag, image, remote.WithContext(ctx), remote.WithAuth(auth), remote.WithTransport(client.Transport)); err != nil {
		return "", fmt.Errorf("push image: %w", err)
	}
	return tag.Name(), nil
}

// caCertificate is the certificate of the authority that issued the registry's.
func (r *Registry) caCertificate() ([]byte, error) { return readFile(r.ca.caFile()) }

// Close stops serving and waits for it.
func (r *Registry) Close() error {
	err := r.server.Close()
	if ended := <-r.done; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// Trust makes the node's containerd trust the registry's certificate.
func (b *Box) Trust(r *Registry) error { return b.Mirror(r.Host, r) }

// Mirror makes the node's containerd pull from r instead of the registry of that name.
func (n *nodeFiles) Mirror(name string, r *Registry) error {
	return n.writeFile("/etc/containerd/certs.d/"+name+"/hosts.toml", hostsFile(r))
}

// hostsFile is the configuration of a registry whose images are pulled from the bed's.
func hostsFile(r *Registry) []byte {
	server := url.URL{Scheme: "https", Host: r.Host}
	return fmt.Appendf(nil, "server = %q\nca = %q\n", server.String(), nodeCAFile)
}

// Image returns a test image by its name, for pushing.
func (b *Bed) Image(name string) (v1.Image, error) {
	archive, ok := b.images.Archives[name]
	if !ok {
		return nil, fmt.Errorf("find test image: no image %s", name)
	}
	image, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		return nil, fmt.Errorf("read image %s: %w", name, err)
	}
	return image, nil
}
