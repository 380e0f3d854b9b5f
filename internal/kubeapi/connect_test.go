package kubeapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestClients(t *testing.T) {
	var mu sync.Mutex
	var accept, agent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		accept, agent = r.Header.Get("Accept"), r.UserAgent()
		mu.Unlock()
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{Reason: metav1.StatusReasonNotFound})
	}))
	defer server.Close()
	wrapped := 0
	c, err := NewClients(&rest.Config{Host: server.URL}, Config{UserAgent: "swiftlet/test", QPS: 50, Burst: 100, HeartbeatTimeout: time.Second,
		WrapTransport: func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) { wrapped++; return next.RoundTrip(r) })
		}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Kube.Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	if want := "application/vnd.kubernetes.protobuf,application/json"; accept != want {
		t.Errorf("accepts %q, want %q", accept, want)
	}
	_, _ = c.Heartbeat.Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	if wrapped != 2 {
		t.Errorf("%d of 2 requests passed the wrapper", wrapped)
	}
	if agent != "swiftlet/test" {
		t.Errorf("user agent %q", agent)
	}
	if c.Heartbeat.Core().GetRateLimiter() != nil {
		t.Error("heartbeats are throttled")
	}
	if got := c.Kube.Core().GetRateLimiter().QPS(); got != 50 {
		t.Errorf("general client limited to %v QPS", got)
	}
	for c.Objects.Core().GetRateLimiter().TryAccept() { // as the watches of a pod with thousands of ConfigMaps do
	}
	if !c.Kube.Core().GetRateLimiter().TryAccept() {
		t.Error("reads of ConfigMaps and Secrets use up the rate of statuses")
	}
	c.CloseConnections()
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestReplacedTokenIsUsed: the token of the kubeconfig's token file has expired and is replaced.
func TestReplacedTokenIsUsed(t *testing.T) {
	var mu sync.Mutex
	valid := "first"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer "+valid {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	c, err := NewClients(&rest.Config{Host: server.URL, BearerToken: "first", BearerTokenFile: file}, Config{HeartbeatTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	request := func() error { return c.Kube.Core().Get().AbsPath("/").Do(t.Context()).Error() }
	if err := request(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	valid = "second"
	mu.Unlock()
	if err := request(); !apierrors.IsUnauthorized(err) {
		t.Errorf("expired token: %v, want that it is rejected", err)
	}
	write("second")
	if _ = request(); request() != nil { // the first one may notice that the token is old
		t.Errorf("the replaced token is not used: %v", request())
	}
}
