package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestNewLink asks the kubelet for a link.
func TestNewLink(t *testing.T) {
	const link = `{"path":"/ui/login?token=x"}`
	for name, c := range map[string]struct {
		texts map[string]string // by method and path
		want  string
	}{
		"kubelet":       {map[string]string{"POST /ui/link": link}, "/ui/login?token=x"},
		"no page":       {nil, "link to the page not found"},
		"not a kubelet": {map[string]string{"POST /ui/link": "hello"}, "read link to the page: "},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, found := c.texts[r.Method+" "+r.URL.Path]
				if !found {
					http.NotFound(w, r)
					return
				}
				_, _ = w.Write([]byte(text))
			}))
			defer server.Close()
			base, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			got, err := (&agentAPI{http: server.Client(), base: base}).newLink(t.Context())
			if err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
