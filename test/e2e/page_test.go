package e2e

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"swiftlet/test/bed"
)

// pageThroughAPIServer opens the page through the API server's node proxy, as with kubectl proxy: no URL may lead out
// of the prefix, and events come as they happen.
func pageThroughAPIServer(t *testing.T, node *bed.Box) {
	t.Helper()
	if kubelet == bed.Reference {
		return
	}
	config := cluster.ControlPlane.Config
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	prefix := config.Host + "/api/v1/nodes/" + node.Name() + "/proxy/ui"
	open := func(path, site string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, prefix+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Sec-Fetch-Site", site)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response
	}
	for _, path := range []string{"", "/"} {
		page := open(path, "same-origin")
		if page.StatusCode != http.StatusOK || page.Request.URL.String() != prefix+"/" || !strings.HasPrefix(page.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("GET %s%s through the API server: %s, %v", prefix, path, page.Status, page.Header)
		}
	}
	if first := bufio.NewScanner(open("/api/stream", "same-origin").Body); !first.Scan() || first.Text() != "event: pods" {
		t.Errorf("stream through the API server begins with %q: %v", first.Text(), first.Err())
	}
	if foreign := open("/api/stream", "cross-site"); foreign.StatusCode != http.StatusForbidden {
		t.Errorf("stream for a page of another site: %s", foreign.Status)
	}
}
