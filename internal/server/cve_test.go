package server

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/portforward"
)

// CVE-2019-11248: the health port, which authenticates no client, serves no profiles.
func TestHealthzPortServesOnlyHealthz(t *testing.T) {
	n := start(t, true, enableAll)
	for _, r := range n.server.routes {
		if strings.HasPrefix(r.path, "/healthz") {
			continue
		}
		path := strings.TrimSuffix(r.path, "{$}")
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
			if code, body, _ := n.send("http", "10248", method, path, credential{}); code != http.StatusNotFound {
				t.Errorf("%s %s on the health port: %d %.100s", method, path, code, body)
			}
		}
	}
}

// CVE-2020-8551: requests of strangers with other paths and methods each add no time series.
func TestStrangersAddNoLabels(t *testing.T) {
	var mu sync.Mutex
	seen := map[Request]bool{}
	n := start(t, true, func(_ *Config, d *Deps) {
		d.Meters.Request = func(r Request) func() {
			mu.Lock()
			defer mu.Unlock()
			seen[r] = true
			return func() {}
		}
	})
	for i := range 50 {
		n.send("https", "10250", "GET", fmt.Sprintf("/path%d/x", i), credential{})
		n.send("https", "10250", fmt.Sprintf("METHOD%d", i), "/pods", credential{})
		n.send("https", "10250", "GET", fmt.Sprintf("/metrics/path%d", i), credential{})
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) > 3 {
		t.Errorf("150 requests added %d label values, want at most 3: %v", len(seen), slices.Collect(maps.Keys(seen)))
	}
}

// CVE-2025-0426: the read-only port, which authenticates no client, writes nothing to the disk.
func TestReadOnlyPortOnlyReads(t *testing.T) {
	n := start(t, true, func(c *Config, d *Deps) { enableAll(c, d); c.Kubelet.ReadOnlyPort = 10255 })
	for path, want := range map[string]int{"/checkpoint/ns/web/main": 404, "/exec/ns/web/main": 405, "/run/ns/web/main": 405, "/debug/flags/v": 404} {
		for _, method := range []string{http.MethodPost, http.MethodPut} {
			if code, body, _ := n.send("http", "10255", method, path, credential{}); code != want {
				t.Errorf("%s %s on the read-only port: %d %.100s, want %d", method, path, code, body, want)
			}
		}
	}
}

// CVE-2020-8559: an answer of the runtime that is no upgrade, such as a redirect, opens no tunnel, and
// the redirect is not followed with the client's request.
func TestOnlyAnUpgradeOpensATunnel(t *testing.T) {
	followed := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true }))
	t.Cleanup(other.Close)
	runtime := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusFound)
	}))
	t.Cleanup(runtime.Close)
	to, err := url.Parse(runtime.URL)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := dialSPDY(t.Context(), to, portforward.PortForwardProtocolV1Name); err == nil {
		conn.Close()
		t.Error("a redirect opened a tunnel")
	}
	if followed {
		t.Error("the redirect was followed")
	}
}
