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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "` + server + `"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConnect(t *testing.T) {
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
	c, err := Connect(Config{Kubeconfig: kubeconfig(t, server.URL), UserAgent: "swiftlet/test", QPS: 50, Burst: 100, HeartbeatTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Kube.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	if want := "application/vnd.kubernetes.protobuf,application/json"; accept != want {
		t.Errorf("accepts %q, want %q", accept, want)
	}
	if agent != "swiftlet/test" {
		t.Errorf("user agent %q", agent)
	}
	if c.Heartbeat.CoreV1().RESTClient().GetRateLimiter() != nil {
		t.Error("heartbeats are throttled")
	}
	if got := c.Kube.CoreV1().RESTClient().GetRateLimiter().QPS(); got != 50 {
		t.Errorf("general client limited to %v a second", got)
	}
	c.CloseConnections()
}

func TestConnectSaysWhatIsWrong(t *testing.T) {
	for name, path := range map[string]string{"no file": "", "a missing file": "/none/at/all"} {
		if _, err := Connect(Config{Kubeconfig: path}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
