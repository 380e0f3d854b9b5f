package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authn "k8s.io/api/authentication/v1"
	authz "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	authnclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authzclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"swiftlet/internal/config"
)

// fakePods is a node with one pod.
type fakePods struct{}

func (fakePods) Pods() *v1.PodList {
	pod := v1.Pod{}
	pod.Name = "one"
	return &v1.PodList{Items: []v1.Pod{pod}}
}

func (fakePods) RunningPods(context.Context) (*v1.PodList, error) { return &v1.PodList{}, nil }

// fakeAPI serves TokenReviews and SubjectAccessReviews.
type fakeAPI struct {
	*httptest.Server
	tokens map[string]string   // token → user
	grants map[string][]string // user → subresources, or verb and subresource; "*" for all

	mu     sync.Mutex
	broken bool
	counts map[string]int // kind of review → count
	last   authz.SubjectAccessReviewSpec
}

func newFakeAPI(t *testing.T) *fakeAPI {
	a := &fakeAPI{
		tokens: map[string]string{"good": "reader", "scraper": "prometheus", "old": "legacy"},
		grants: map[string][]string{
			"reader": {"pods"}, "prometheus": {"metrics"}, "legacy": {"proxy"}, "admin": {"*"},
			"probe": {"healthz"}, "system:anonymous": {"healthz"},
		},
		counts: map[string]int{},
	}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kind := filepath.Base(r.URL.Path)
	a.counts[kind]++
	if a.broken {
		http.Error(w, "no etcd", http.StatusForbidden)
		return
	}
	var response any
	switch kind {
	case "tokenreviews":
		var review authn.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.Status.User.Username, review.Status.Authenticated = a.tokens[review.Spec.Token], a.tokens[review.Spec.Token] != ""
		response = review
	case "subjectaccessreviews":
		var review authz.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		a.last = review.Spec
		for _, sub := range a.grants[review.Spec.User] {
			attributes := review.Spec.ResourceAttributes
			review.Status.Allowed = review.Status.Allowed || sub == "*" || sub == attributes.Subresource || sub == attributes.Verb+" "+attributes.Subresource
		}
		response = review
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(response)
}

func (a *fakeAPI) setBroken(broken bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = broken
}

func (a *fakeAPI) count(kind string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts[kind]
}

// node is a running server on a port of its own.
type node struct {
	t       *testing.T
	ca      *authority
	api     *fakeAPI
	server  *Server
	certDir string
	ports   map[string]string // configured port → address
}

// start runs a server with the defaults of a configuration file, as changed by edit. withAPI adds
// an API server.
func start(t *testing.T, withAPI bool, edit func(*Config, *Deps)) *node {
	t.Helper()
	n := &node{t: t, ca: newAuthority(t, "ca"), certDir: t.TempDir(), ports: map[string]string{}}
	file := filepath.Join(t.TempDir(), "kubelet.yaml")
	text := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\naddress: 127.0.0.1\n" +
		"authentication: {x509: {clientCAFile: " + n.ca.file + "}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load([]string{"--config", file})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{NodeName: "node-1", CertDir: n.certDir, Kubelet: &loaded.Kubelet, limits: defaultLimits()}
	cfg.limits.connectionRate = rate{1000, 1000} // most tests open a connection for each request
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubelet_running_pods"}))
	deps := Deps{Log: slog.New(slog.DiscardHandler), Clock: clock.RealClock{}, Pods: fakePods{}, Metrics: registry, ProbeMetrics: registry, Stats: fakeStats{}, SLIs: &fakeSLIs{Registry: registry},
		Containers: newFakeContainers(), Logs: fakeLogs{}, Runtime: &fakeRuntime{}}
	if withAPI {
		n.api = newFakeAPI(t)
		rc := &rest.Config{Host: n.api.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
		deps.TokenReviews = authnclient.NewForConfigOrDie(rc).TokenReviews()
		deps.AccessReviews = authzclient.NewForConfigOrDie(rc).SubjectAccessReviews()
	}
	if edit != nil {
		edit(&cfg, &deps)
	}
	n.run(cfg, deps)
	return n
}

// run starts the server and waits until all its ports are open.
func (n *node) run(cfg Config, deps Deps) {
	n.t.Helper()
	opened := make(chan struct{}, 3)
	var mu sync.Mutex
	deps.Listen = func(ctx context.Context, network, address string) (net.Listener, error) {
		l, err := net.Listen(network, "127.0.0.1:0")
		_, port, _ := net.SplitHostPort(address)
		mu.Lock()
		n.ports[port] = l.Addr().String()
		mu.Unlock()
		opened <- struct{}{}
		return l, err
	}
	server, err := New(cfg, deps)
	if err != nil {
		n.t.Fatal(err)
	}
	n.server = server
	ctx, cancel := context.WithCancel(n.t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	n.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			n.t.Errorf("Run: %v", err)
		}
	})
	ports := 2
	if cfg.Kubelet.ReadOnlyPort > 0 {
		ports++
	}
	for range ports {
		select {
		case <-opened:
		case err := <-done:
			n.t.Fatalf("Run ended early: %v", err)
		}
	}
}

// credential is a client certificate or a bearer token.
type credential struct {
	cert  *tls.Certificate
	token string
}

// get sends a request to the HTTPS port on a connection of its own.
func (n *node) get(method, path string, cred credential) (code int, body string, proto string) {
	n.t.Helper()
	return n.send("https", "10250", method, path, cred)
}

func (n *node) send(scheme, port, method, path string, cred credential) (code int, body string, proto string) {
	n.t.Helper()
	client := n.client(cred)
	defer client.CloseIdleConnections()
	return n.request(client, scheme, port, method, path, cred)
}

// client returns a client with the certificate of the credential, if any.
func (n *node) client(cred credential) *http.Client {
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	if cred.cert != nil {
		transport.TLSClientConfig.Certificates = []tls.Certificate{*cred.cert}
	}
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

func (n *node) request(client *http.Client, scheme, port, method, path string, cred credential) (code int, body string, proto string) {
	n.t.Helper()
	req, err := http.NewRequest(method, fmt.Sprintf("%s://%s%s", scheme, n.ports[port], path), nil)
	if err != nil {
		n.t.Fatal(err)
	}
	if cred.token != "" {
		req.Header.Set("Authorization", "Bearer "+cred.token)
	}
	response, err := client.Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return response.StatusCode, string(text), response.Proto
}

// credentials returns all kinds of credentials, valid and invalid.
func (n *node) credentials() map[string]credential {
	n.t.Helper()
	foreign := newAuthority(n.t, "foreign")
	cert := func(a *authority, name string, edit func(*x509.Certificate)) *tls.Certificate {
		pair := a.issue(n.t, name, []string{"team"}, edit)
		return &pair
	}
	return map[string]credential{
		"no credential": {},
		"admin cert":    {cert: cert(n.ca, "admin", nil)},
		"probe cert":    {cert: cert(n.ca, "probe", nil)},
		"unknown cert":  {cert: cert(n.ca, "mallory", nil)},
		"expired cert":  {cert: cert(n.ca, "admin", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })},
		"serving cert":  {cert: cert(n.ca, "admin", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })},
		"foreign cert":  {cert: cert(foreign, "admin", nil)},
		"pods token":    {token: "good"},
		"metrics token": {token: "scraper"},
		"proxy token":   {token: "old"},
		"bad token":     {token: "wrong"},
		"foreign cert, pods token": {cert: cert(foreign, "admin", nil),
			token: "good"},
	}
}
