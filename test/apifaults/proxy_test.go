package apifaults

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// startProxy starts a proxy of an API server with one pod, and returns a function that requests a path.
func startProxy(t *testing.T) (*Proxy, func(path, token string) (int, string)) {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case IsWatch(r):
			_, _ = io.WriteString(w, `{"type":"ADDED","object":{"metadata":{"name":"a"}}}`+"\n")
		case strings.HasSuffix(r.URL.Path, "/pods"):
			_, _ = io.WriteString(w, `{"kind":"PodList","items":[{"metadata":{"name":"a"}}]}`)
		default:
			_, _ = io.WriteString(w, "ok")
		}
	}))
	t.Cleanup(api.Close)
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := authority.Issue("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start("127.0.0.1", &rest.Config{Host: api.URL}, certificate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM())
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	t.Cleanup(client.CloseIdleConnections)
	return p, func(path, token string) (int, string) {
		t.Helper()
		r, err := http.NewRequest(http.MethodGet, p.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := client.Do(r)
		if err != nil {
			return 0, ""
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(text)
	}
}

func TestFaults(t *testing.T) {
	p, get := startProxy(t)
	const list, watch = "/api/v1/pods", "/api/v1/pods?watch=true"
	rename := Rewriting("pods", func(object map[string]any) { object["metadata"].(map[string]any)["name"] = "b" })
	for name, c := range map[string]struct {
		fault Fault
		path  string
		code  int
		body  string // part of it
	}{
		"none":                   {nil, list, 200, `"name":"a"`},
		"429":                    {TooManyRequests(time.Second), list, 429, "TooManyRequests"},
		"500":                    {Failing(500), list, 500, "injected"},
		"502":                    {FailingGateway, list, 502, "<html>"},
		"no response":            {Hanging, list, 0, ""},
		"cut":                    {Cutting, list, 0, ""},
		"410 to a list":          {GoneWatches, list, 200, `"name":"a"`},
		"410 to a watch":         {GoneWatches, watch, 410, "Expired"},
		"expired watch":          {ExpiredWatches, watch, 200, `"type":"ERROR"`},
		"slow watch":             {SlowWatches(time.Millisecond), watch, 200, "ADDED"},
		"valid token":            {RequireToken(func() string { return "t" }), list, 200, `"name":"a"`},
		"expired token":          {RequireToken(func() string { return "other" }), list, 401, "Unauthorized"},
		"rewritten list":         {rename, list, 200, `"name":"b"`},
		"rewritten watch":        {rename, watch, 200, `{"object":{"metadata":{"name":"b"}},"type":"ADDED"}` + "\n"},
		"other kind as it is":    {rename, "/api/v1/nodes/a", 200, "ok"},
		"rewritten, but no JSON": {Rewriting("nodes", func(map[string]any) {}), "/api/v1/nodes/a", 200, "ok"},
	} {
		p.Set(c.fault)
		if code, body := get(c.path, "t"); code != c.code || !strings.Contains(body, c.body) {
			t.Errorf("%s: %d %s, want %d %s", name, code, body, c.code, c.body)
		}
	}
	if got := p.Requests(); got["GET pods"] < 9 || got["WATCH pods"] != 4 || len(p.Requests()) != 0 {
		t.Errorf("requests are %v", got)
	}
}

func TestReplacedCertificate(t *testing.T) {
	p, get := startProxy(t)
	if code, _ := get("/api", ""); code != 200 {
		t.Fatalf("%d, want 200", code)
	}
	other, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := other.Issue("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	p.SetCertificate(certificate)
	if code, _ := get("/api", ""); code != 0 {
		t.Errorf("%d with a certificate of another authority, want none", code)
	}
}
