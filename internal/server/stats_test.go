package server

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// fakeStats returns summaries named after the method.
type fakeStats struct{}

func (fakeStats) Summary(context.Context) (*statsapi.Summary, error) {
	return &statsapi.Summary{Node: statsapi.NodeStats{NodeName: "all"}}, nil
}

func (fakeStats) UsageSummary(context.Context) (*statsapi.Summary, error) {
	return &statsapi.Summary{Node: statsapi.NodeStats{NodeName: "usage"}}, nil
}

func (fakeStats) WriteCadvisor(_ context.Context, w io.Writer) error {
	_, err := fmt.Fprintln(w, "cadvisor 1")
	return err
}

func (fakeStats) WriteResource(_ context.Context, w io.Writer) error {
	_, err := fmt.Fprintln(w, "resource 1")
	return err
}

func TestStats(t *testing.T) {
	n := start(t, true, nil)
	admin := n.credentials()["admin cert"]
	for path, want := range map[string]string{
		"/stats/summary": "all",
		"/stats/summary?only_cpu_and_memory=false": "all",
		"/stats/summary?only_cpu_and_memory=true":  "usage",
	} {
		_, body, _ := n.get("GET", path, admin)
		var got statsapi.Summary
		if err := json.Unmarshal([]byte(body), &got); err != nil || got.Node.NodeName != want {
			t.Errorf("%s returns %q (%v), want %q", path, body, err, want)
		}
	}
	for _, name := range []string{"cadvisor", "resource"} {
		if _, body, _ := n.get("GET", "/metrics/"+name, admin); body != name+" 1\n" {
			t.Errorf("/metrics/%s is %q", name, body)
		}
	}
}

// TestGzippedMetrics uses a transport that does not decompress.
func TestGzippedMetrics(t *testing.T) {
	n := start(t, true, nil)
	admin := n.credentials()["admin cert"]
	transport := &http.Transport{DisableCompression: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*admin.cert}}}
	defer transport.CloseIdleConnections()
	for accept, gzipped := range map[string]bool{"": false, "gzip": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "identity": false} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+n.ports["10250"]+"/metrics/cadvisor", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept-Encoding", accept)
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		var body io.Reader = response.Body
		if got := response.Header.Get("Content-Encoding") == "gzip"; got != gzipped {
			t.Errorf("accept %q: gzip is %v, want %v", accept, got, gzipped)
		} else if gzipped {
			if body, err = gzip.NewReader(response.Body); err != nil {
				t.Fatal(err)
			}
		}
		text, err := io.ReadAll(body)
		response.Body.Close()
		if err != nil || string(text) != "cadvisor 1\n" {
			t.Errorf("accept %q: %q, %v", accept, text, err)
		}
	}
}
