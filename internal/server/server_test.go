package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestAuthorizationMatrix(t *testing.T) {
	n := start(t, true, nil)
	paths := []string{"GET /pods", "GET /runningpods/", "GET /configz", "GET /healthz", "GET /healthz/ping", "GET /metrics", "GET /nothing", "POST /pods", "HEAD /pods", "GET /exec/ns/pod/c",
		"GET /containerLogs/ns/web/main", "POST /run/ns/web/main", "GET /logs/none", "GET /debug/pprof/cmdline", "GET /pods/../exec/ns/web/main"}
	matrix := map[string][]int{ // one code for each path
		"no credential":            {401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401},
		"admin cert":               {200, 200, 200, 200, 200, 200, 404, 405, 405, 400, 200, 200, 404, 200, 400},
		"probe cert":               {403, 403, 403, 200, 200, 403, 403, 403, 403, 403, 403, 403, 403, 403, 403},
		"unknown cert":             {403, 403, 403, 403, 403, 403, 403, 403, 403, 403, 403, 403, 403, 403, 403},
		"expired cert":             {401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401},
		"serving cert":             {401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401},
		"foreign cert":             {401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401},
		"pods token":               {200, 200, 403, 403, 403, 403, 403, 405, 405, 403, 403, 403, 403, 403, 403},
		"metrics token":            {403, 403, 403, 403, 403, 200, 403, 403, 403, 403, 403, 403, 403, 403, 403},
		"proxy token":              {200, 200, 200, 200, 200, 403, 404, 405, 405, 400, 200, 200, 403, 200, 400},
		"bad token":                {401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401},
		"foreign cert, pods token": {200, 200, 403, 403, 403, 403, 403, 405, 405, 403, 403, 403, 403, 403, 403},
	}
	for name, cred := range n.credentials() {
		for i, request := range paths {
			method, path, _ := strings.Cut(request, " ")
			if code, body, _ := n.get(method, path, cred); code != matrix[name][i] {
				t.Errorf("%s by %s: %d, want %d: %s", request, name, code, matrix[name][i], body)
			}
		}
	}
}

func TestAnonymousRequests(t *testing.T) {
	n := start(t, true, func(c *Config, _ *Deps) { *c.Kubelet.Authentication.Anonymous.Enabled = true })
	credentials := n.credentials()
	for request, want := range map[string]map[string]int{
		"/healthz": {"no credential": 200, "bad token": 401, "foreign cert": 401},
		"/pods":    {"no credential": 403, "pods token": 200, "bad token": 401},
	} {
		for name, code := range want {
			if got, _, _ := n.get("GET", request, credentials[name]); got != code {
				t.Errorf("%s by %s: %d, want %d", request, name, got, code)
			}
		}
	}
}

func TestWithoutAPIServer(t *testing.T) {
	n := start(t, false, nil)
	credentials := n.credentials()
	master := n.ca.issue(t, "root", []string{"system:masters"}, nil)
	credentials["master cert"] = credential{cert: &master}
	for name, want := range map[string]int{"no credential": 401, "master cert": 200, "admin cert": 403, "foreign cert": 401, "pods token": 401} {
		if got, _, _ := n.get("GET", "/pods", credentials[name]); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

func TestAlwaysAllowStillAuthenticates(t *testing.T) {
	n := start(t, false, func(c *Config, _ *Deps) { c.Kubelet.Authorization.Mode = "AlwaysAllow" })
	credentials := n.credentials()
	for name, want := range map[string]int{"no credential": 401, "unknown cert": 200, "foreign cert": 401, "pods token": 401} {
		if got, _, _ := n.get("GET", "/pods", credentials[name]); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

func TestReviewsFailClosedAndAreCached(t *testing.T) {
	n := start(t, true, nil)
	credentials := n.credentials()
	for range 3 {
		n.get("GET", "/pods", credentials["pods token"])
		n.get("GET", "/metrics", credentials["bad token"])
		n.get("GET", "/metrics", credentials["probe cert"])
	}
	if tokens, access := n.api.count("tokenreviews"), n.api.count("subjectaccessreviews"); tokens != 2 || access != 2 {
		t.Errorf("%d token reviews and %d access reviews, want 2 and 2", tokens, access)
	}
	if got := n.api.last; got.User != "probe" || got.ResourceAttributes.Name != "node-1" || got.ResourceAttributes.Resource != "nodes" ||
		got.ResourceAttributes.Verb != "get" || strings.Join(got.Groups, " ") != "team system:authenticated" {
		t.Errorf("last access review was %+v", got)
	}
	n.api.setBroken(true)
	for name, want := range map[string]int{"pods token": 200, "metrics token": 401, "admin cert": 500} {
		if got, body, _ := n.get("GET", "/pods", credentials[name]); got != want {
			t.Errorf("API server down, %s: %d, want %d: %s", name, got, want, body)
		}
	}
	n.api.setBroken(false)
	if got, _, _ := n.get("GET", "/pods", credentials["admin cert"]); got != 200 {
		t.Errorf("API server back: %d, want 200; errors must not be cached", got)
	}
}

func TestResponses(t *testing.T) {
	slis := &fakeSLIs{Registry: prometheus.NewRegistry()}
	n := start(t, true, func(_ *Config, d *Deps) {
		d.Checks = []Check{{"syncloop", func(*http.Request) error { return errors.New("stuck since noon") }}}
		d.SLIs = slis
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
	if code, body, _ := n.send("http", "10248", "GET", "/healthz", credential{}); code != 500 || body != "[+]ping ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n" {
		t.Errorf("health port = %d %s", code, body)
	}
	if code, body, _ := n.send("http", "10248", "GET", "/healthz/ping", credential{}); code != 200 || body != "ok" {
		t.Errorf("ping on the health port = %d %s", code, body)
	}
	if code, _, _ := n.send("http", "10248", "GET", "/pods", credential{}); code != 404 {
		t.Errorf("pods on the health port = %d, want 404", code)
	}
	// Checks of /healthz on both ports, without excluded ones and requests for single checks.
	want := "ping healthz true, log healthz true, syncloop healthz false, ping healthz true, log healthz true, ping healthz true, syncloop healthz false"
	if got := slis.list(); got != want {
		t.Errorf("checked: %s, want %s", got, want)
	}
	if code, body, _ := n.get("DELETE", "/metrics/slis", admin); code != 200 || body != "metrics reset\n" || slis.list() != "" {
		t.Errorf("reset of SLIs = %d %s, left: %s", code, body, slis.list())
	}
}

// fakeSLIs record the results of checks.
type fakeSLIs struct {
	*prometheus.Registry
	mu      sync.Mutex
	checked []string
}

func (f *fakeSLIs) Checked(name, endpoint string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checked = append(f.checked, fmt.Sprint(name, " ", endpoint, " ", err == nil))
}

func (f *fakeSLIs) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checked = nil
}

func (f *fakeSLIs) list() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.checked, ", ")
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
	for path, want := range map[string]int{"/pods": 200, "/metrics": 200, "/healthz": 200, "/runningpods/": 405, "/logs/": 405, "/exec/a/b/c": 405, "/configz": 404, "/debug/flags/v": 404} {
		if got, _, _ := n.send("http", "10255", "GET", path, credential{}); got != want {
			t.Errorf("read-only %s: %d, want %d", path, got, want)
		}
	}
}

// servedName is the common name of the serving certificate.
func (n *node) servedName() string {
	n.t.Helper()
	conn, err := tls.Dial("tcp", n.ports["10250"], &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		n.t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func TestCertificateFilesAreReloaded(t *testing.T) {
	issuer, dir := newAuthority(t, "issuer"), t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	issuer.writePair(t, "first", certFile, keyFile)
	n := start(t, true, func(c *Config, _ *Deps) {
		c.Kubelet.TLSCertFile, c.Kubelet.TLSPrivateKeyFile = certFile, keyFile
	})
	if got := n.servedName(); got != "first" {
		t.Errorf("serving %q, want first", got)
	}
	issuer.writePair(t, "second", certFile, keyFile)
	if got := n.servedName(); got != "second" {
		t.Errorf("after a change serving %q, want second", got)
	}
	if err := os.WriteFile(certFile, []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := n.servedName(); got != "second" {
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

func TestSelfSignedCertificateIsReused(t *testing.T) {
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
			t.Errorf("%s later: reused %t, want %t", later, !same, same)
		}
		first = now
	}
}

func TestTLS11IsRefused(t *testing.T) {
	n := start(t, true, nil)
	_, err := tls.Dial("tcp", n.ports["10250"], &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})
	if err == nil {
		t.Error("TLS 1.1 is accepted")
	}
}

// Streams are passed on to the runtime with the headers of the request. A credential must not be among them, whether
// it was used or not.
func TestHandlersSeeNoCredential(t *testing.T) {
	n := start(t, true, nil)
	all := n.credentials()
	for name, cred := range map[string]credential{
		"token":                                  all["pods token"],
		"certificate with a valid token":         {cert: all["admin cert"].cert, token: all["pods token"].token},
		"certificate with the token of another":  {cert: all["admin cert"].cert, token: "of another cluster"},
		"token of no kind that is authenticated": {cert: all["admin cert"].cert, token: "a b c"},
	} {
		r := httptest.NewRequest("GET", "/pods", nil)
		r.Header.Set("Authorization", "Bearer "+cred.token)
		if cred.cert != nil {
			leaf, err := x509.ParseCertificate(cred.cert.Certificate[0])
			if err != nil {
				t.Fatal(err)
			}
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
		}
		response := httptest.NewRecorder()
		n.server.auth.protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Authorization"); got != "" {
				t.Errorf("%s: the handler sees %q", name, got)
			}
		})).ServeHTTP(response, r)
		if response.Code != 200 {
			t.Errorf("%s: %d", name, response.Code)
		}
	}
}
