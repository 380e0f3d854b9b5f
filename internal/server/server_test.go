package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
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

// fakeAPI answers reviews over HTTP: it knows the token of each user, and who may reach
// which subresources.
type fakeAPI struct {
	*httptest.Server
	tokens map[string]string   // token → user
	may    map[string][]string // user → subresources, "*" for all

	mu     sync.Mutex
	broken bool
	asked  map[string]int // kind of review → count
	last   authz.SubjectAccessReviewSpec
}

func newFakeAPI(t *testing.T) *fakeAPI {
	a := &fakeAPI{
		tokens: map[string]string{"good": "reader", "scraper": "prometheus", "old": "legacy"},
		may: map[string][]string{
			"reader": {"pods"}, "prometheus": {"metrics"}, "legacy": {"proxy"}, "admin": {"*"},
			"probe": {"healthz"}, "system:anonymous": {"healthz"},
		},
		asked: map[string]int{},
	}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kind := filepath.Base(r.URL.Path)
	a.asked[kind]++
	if a.broken {
		http.Error(w, "no etcd", http.StatusForbidden)
		return
	}
	var answer any
	switch kind {
	case "tokenreviews":
		var review authn.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.Status.User.Username, review.Status.Authenticated = a.tokens[review.Spec.Token], a.tokens[review.Spec.Token] != ""
		answer = review
	case "subjectaccessreviews":
		var review authz.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		a.last = review.Spec
		for _, sub := range a.may[review.Spec.User] {
			review.Status.Allowed = review.Status.Allowed || sub == "*" || sub == review.Spec.ResourceAttributes.Subresource
		}
		answer = review
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (a *fakeAPI) breakDown(broken bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = broken
}

func (a *fakeAPI) count(kind string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[kind]
}

// node is a running server on a port of its own.
type node struct {
	t       *testing.T
	ca      *authority
	api     *fakeAPI
	certDir string
	ports   map[string]string // configured port → address
}

// start runs a server. The configuration is the product's default for a file, but for
// what edit changes; withAPI says whether there is an API server.
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
	cfg := Config{NodeName: "node-1", CertDir: n.certDir, Kubelet: &loaded.Kubelet}
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubelet_running_pods"}))
	deps := Deps{Log: slog.New(slog.DiscardHandler), Clock: clock.RealClock{}, Pods: fakePods{}, Metrics: registry}
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

// credential is how a client shows who it is.
type credential struct {
	cert  *tls.Certificate
	token string
}

// get sends a request to the HTTPS port on a connection of its own.
func (n *node) get(method, path string, who credential) (code int, body string, proto string) {
	n.t.Helper()
	return n.send("https", "10250", method, path, who)
}

func (n *node) send(scheme, port, method, path string, who credential) (code int, body string, proto string) {
	n.t.Helper()
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	if who.cert != nil {
		transport.TLSClientConfig.Certificates = []tls.Certificate{*who.cert}
	}
	request, err := http.NewRequest(method, fmt.Sprintf("%s://%s%s", scheme, n.ports[port], path), nil)
	if err != nil {
		n.t.Fatal(err)
	}
	if who.token != "" {
		request.Header.Set("Authorization", "Bearer "+who.token)
	}
	response, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(request)
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

// credentials makes the clients of the matrix, signed by the node's CA or not.
func (n *node) credentials() map[string]credential {
	n.t.Helper()
	stranger := newAuthority(n.t, "stranger")
	cert := func(a *authority, name string, edit func(*x509.Certificate)) *tls.Certificate {
		pair := a.issue(n.t, name, []string{"team"}, edit)
		return &pair
	}
	return map[string]credential{
		"nobody":        {},
		"admin cert":    {cert: cert(n.ca, "admin", nil)},
		"probe cert":    {cert: cert(n.ca, "probe", nil)},
		"unknown cert":  {cert: cert(n.ca, "mallory", nil)},
		"expired cert":  {cert: cert(n.ca, "admin", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })},
		"serving cert":  {cert: cert(n.ca, "admin", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })},
		"foreign cert":  {cert: cert(stranger, "admin", nil)},
		"pods token":    {token: "good"},
		"metrics token": {token: "scraper"},
		"proxy token":   {token: "old"},
		"bad token":     {token: "wrong"},
		"foreign cert, pods token": {cert: cert(stranger, "admin", nil),
			token: "good"},
	}
}

func TestWhoMayReachWhat(t *testing.T) {
	n := start(t, true, nil)
	paths := []string{"GET /pods", "GET /runningpods/", "GET /configz", "GET /healthz", "GET /healthz/ping", "GET /metrics", "GET /nothing", "POST /pods", "HEAD /pods", "GET /exec/ns/pod/c"}
	matrix := map[string][]int{ // one code for each path
		"nobody":                   {401, 401, 401, 401, 401, 401, 401, 401, 401, 401},
		"admin cert":               {200, 200, 200, 200, 200, 200, 404, 405, 200, 404},
		"probe cert":               {403, 403, 403, 200, 200, 403, 403, 403, 403, 403},
		"unknown cert":             {403, 403, 403, 403, 403, 403, 403, 403, 403, 403},
		"expired cert":             {401, 401, 401, 401, 401, 401, 401, 401, 401, 401},
		"serving cert":             {401, 401, 401, 401, 401, 401, 401, 401, 401, 401},
		"foreign cert":             {401, 401, 401, 401, 401, 401, 401, 401, 401, 401},
		"pods token":               {200, 200, 403, 403, 403, 403, 403, 405, 200, 403},
		"metrics token":            {403, 403, 403, 403, 403, 200, 403, 403, 403, 403},
		"proxy token":              {200, 200, 200, 200, 200, 403, 404, 405, 200, 404},
		"bad token":                {401, 401, 401, 401, 401, 401, 401, 401, 401, 401},
		"foreign cert, pods token": {200, 200, 403, 403, 403, 403, 403, 405, 200, 403},
	}
	for name, who := range n.credentials() {
		for i, request := range paths {
			method, path, _ := strings.Cut(request, " ")
			if code, body, _ := n.get(method, path, who); code != matrix[name][i] {
				t.Errorf("%s by %s: %d, want %d: %s", request, name, code, matrix[name][i], body)
			}
		}
	}
}

func TestAnonymousRequests(t *testing.T) {
	n := start(t, true, func(c *Config, _ *Deps) { *c.Kubelet.Authentication.Anonymous.Enabled = true })
	who := n.credentials()
	for request, want := range map[string]map[string]int{
		"/healthz": {"nobody": 200, "bad token": 401, "foreign cert": 401},
		"/pods":    {"nobody": 403, "pods token": 200, "bad token": 401},
	} {
		for name, code := range want {
			if got, _, _ := n.get("GET", request, who[name]); got != code {
				t.Errorf("%s by %s: %d, want %d", request, name, got, code)
			}
		}
	}
}

func TestWithoutAPIServer(t *testing.T) {
	n := start(t, false, nil)
	who := n.credentials()
	master := n.ca.issue(t, "root", []string{"system:masters"}, nil)
	who["master cert"] = credential{cert: &master}
	for name, want := range map[string]int{"nobody": 401, "master cert": 200, "admin cert": 403, "foreign cert": 401, "pods token": 401} {
		if got, _, _ := n.get("GET", "/pods", who[name]); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

func TestAlwaysAllowStillAuthenticates(t *testing.T) {
	n := start(t, false, func(c *Config, _ *Deps) { c.Kubelet.Authorization.Mode = "AlwaysAllow" })
	who := n.credentials()
	for name, want := range map[string]int{"nobody": 401, "unknown cert": 200, "foreign cert": 401, "pods token": 401} {
		if got, _, _ := n.get("GET", "/pods", who[name]); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

func TestFailsClosedAndRemembers(t *testing.T) {
	n := start(t, true, nil)
	who := n.credentials()
	for range 3 {
		n.get("GET", "/pods", who["pods token"])
		n.get("GET", "/metrics", who["bad token"])
		n.get("GET", "/metrics", who["probe cert"])
	}
	if tokens, rights := n.api.count("tokenreviews"), n.api.count("subjectaccessreviews"); tokens != 2 || rights != 2 {
		t.Errorf("the API server was asked about %d tokens and %d rights, want 2 and 2", tokens, rights)
	}
	if got := n.api.last; got.User != "probe" || got.ResourceAttributes.Name != "node-1" || got.ResourceAttributes.Resource != "nodes" ||
		got.ResourceAttributes.Verb != "get" || strings.Join(got.Groups, " ") != "team system:authenticated" {
		t.Errorf("last question was %+v", got)
	}
	n.api.breakDown(true)
	for name, want := range map[string]int{"pods token": 200, "metrics token": 401, "admin cert": 500} {
		if got, body, _ := n.get("GET", "/pods", who[name]); got != want {
			t.Errorf("API server down, %s: %d, want %d: %s", name, got, want, body)
		}
	}
	n.api.breakDown(false)
	if got, _, _ := n.get("GET", "/pods", who["admin cert"]); got != 200 {
		t.Errorf("API server back: %d, want 200; errors must not be remembered", got)
	}
}

func TestAnswers(t *testing.T) {
	n := start(t, true, func(_ *Config, d *Deps) {
		d.Checks = []Check{{"syncloop", func(*http.Request) error { return errors.New("stuck since noon") }}}
	})
	admin := n.credentials()["admin cert"]
	_, pods, proto := n.get("GET", "/pods", admin)
	if !strings.HasPrefix(pods, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"one"}`) || proto != "HTTP/2.0" {
		t.Errorf("%s pods = %s", proto, pods)
	}
	if _, body, _ := n.get("GET", "/metrics", admin); !strings.Contains(body, "kubelet_running_pods 0") {
		t.Errorf("metrics = %s", body)
	}
	if _, body, _ := n.get("GET", "/configz", admin); !strings.HasPrefix(body, `{"kubeletconfig":{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1"`) {
		t.Errorf("configz = %s", body)
	}
	if code, body, _ := n.get("GET", "/healthz", admin); code != 500 || body != "[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n" {
		t.Errorf("healthz = %d %s", code, body)
	}
	if code, body, _ := n.get("GET", "/healthz?exclude=syncloop&verbose", admin); code != 200 || body != "[+]ping ok\n[+]log ok\n[+]syncloop excluded: ok\nhealthz check passed\n" {
		t.Errorf("healthz without syncloop = %d %s", code, body)
	}
	if code, body, _ := n.send("http", "10248", "GET", "/healthz", credential{}); code != 200 || body != "ok" {
		t.Errorf("health port = %d %s", code, body)
	}
	if code, _, _ := n.send("http", "10248", "GET", "/pods", credential{}); code != 404 {
		t.Errorf("pods on the health port = %d, want 404", code)
	}
}

func TestDebuggingDisabledAndReadOnlyPort(t *testing.T) {
	n := start(t, true, func(c *Config, _ *Deps) {
		*c.Kubelet.EnableDebuggingHandlers = false
		c.Kubelet.ReadOnlyPort = 10255
	})
	admin := n.credentials()["admin cert"]
	for path, want := range map[string]int{"/pods": 200, "/runningpods/": 405, "/exec/a/b/c": 405, "/configz": 404} {
		if got, _, _ := n.get("GET", path, admin); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	for path, want := range map[string]int{"/pods": 200, "/metrics": 200, "/healthz": 200, "/runningpods/": 404, "/configz": 404} {
		if got, _, _ := n.send("http", "10255", "GET", path, credential{}); got != want {
			t.Errorf("read-only %s: %d, want %d", path, got, want)
		}
	}
}

// served is the name in the certificate that the server shows.
func (n *node) served() string {
	n.t.Helper()
	conn, err := tls.Dial("tcp", n.ports["10250"], &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		n.t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func TestFilesAreReloaded(t *testing.T) {
	issuer, dir := newAuthority(t, "issuer"), t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	issuer.writePair(t, "first", certFile, keyFile)
	n := start(t, true, func(c *Config, _ *Deps) {
		c.Kubelet.TLSCertFile, c.Kubelet.TLSPrivateKeyFile = certFile, keyFile
	})
	if got := n.served(); got != "first" {
		t.Errorf("serving %q, want first", got)
	}
	issuer.writePair(t, "second", certFile, keyFile)
	if got := n.served(); got != "second" {
		t.Errorf("after a change serving %q, want second", got)
	}
	if err := os.WriteFile(certFile, []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := n.served(); got != "second" {
		t.Errorf("after a broken change serving %q, want second", got)
	}

	old := n.credentials()["admin cert"]
	fresh := newAuthority(t, "fresh")
	text, err := os.ReadFile(fresh.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.ca.file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	pair := fresh.issue(t, "admin", nil, nil)
	if code, _, _ := n.get("GET", "/pods", credential{cert: &pair}); code != 200 {
		t.Errorf("certificate of the new CA: %d, want 200", code)
	}
	if code, _, _ := n.get("GET", "/pods", old); code != 401 {
		t.Errorf("certificate of the old CA: %d, want 401", code)
	}
}

func TestSelfSignedCertificateIsKept(t *testing.T) {
	n := start(t, true, nil)
	first, err := os.ReadFile(filepath.Join(n.certDir, "kubelet.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(n.certDir, "kubelet.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v %v, want mode 0600", info, err)
	}
	certFile, keyFile := filepath.Join(n.certDir, "kubelet.crt"), filepath.Join(n.certDir, "kubelet.key")
	for later, same := range map[time.Duration]bool{time.Hour: true, 20 * 365 * 24 * time.Hour: false} {
		if err := ensureSelfSigned("node-1", certFile, keyFile, time.Now().Add(later)); err != nil {
			t.Fatal(err)
		}
		now, _ := os.ReadFile(certFile)
		if same != (string(now) == string(first)) {
			t.Errorf("%s later: kept %t, want %t", later, !same, same)
		}
		first = now
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	n := start(t, true, nil)
	_, err := tls.Dial("tcp", n.ports["10250"], &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})
	if err == nil {
		t.Error("TLS 1.1 is accepted")
	}
}
