package kubeapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

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
	_, _ = c.Kube.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	if want := "application/vnd.kubernetes.protobuf,application/json"; accept != want {
		t.Errorf("accepts %q, want %q", accept, want)
	}
	_, _ = c.Heartbeat.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	if wrapped != 2 {
		t.Errorf("%d of 2 requests passed the wrapper", wrapped)
	}
	if agent != "swiftlet/test" {
		t.Errorf("user agent %q", agent)
	}
	if c.Heartbeat.CoreV1().RESTClient().GetRateLimiter() != nil {
		t.Error("heartbeats are throttled")
	}
	if got := c.Kube.CoreV1().RESTClient().GetRateLimiter().QPS(); got != 50 {
		t.Errorf("general client limited to %v QPS", got)
	}
	c.CloseConnections()
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
