package server

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/why"
)

// accessRow is a line of testdata/access.tsv.
type accessRow struct {
	method, path string
	subresources []string
	code         int
	upgrade      bool
}

func accessTable(t *testing.T) []accessRow {
	t.Helper()
	text, err := os.ReadFile("testdata/access.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var rows []accessRow
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimSpace(line), "\t")
		if len(cells) < 3 {
			t.Fatalf("line %q has %d cells, want 3 or more", line, len(cells))
		}
		code, err := strconv.Atoi(cells[2])
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		method, path, _ := strings.Cut(cells[0], " ")
		rows = append(rows, accessRow{method, path, strings.Fields(cells[1]), code, slices.Contains(cells, "upgrade")})
	}
	return rows
}

// nodeSubresources are the subresources of nodes that a role may grant.
var nodeSubresources = []string{"stats", "metrics", "log", "healthz", "pods", "configz", "checkpoint", "statusz", "proxy", "status"}

// enableAll enables all routes.
func enableAll(c *Config, d *Deps) {
	c.AllocatedPods, c.Checkpoints, c.Statusz, c.Flagz, c.CheckpointDir = true, true, true, true, "/none"
	*c.Kubelet.EnableSystemLogQuery = true
	d.Checks = []Check{{"syncloop", alwaysHealthy}}
	d.Why = WhyView{Steps: why.New(), Statuses: noStatuses{}, Object: func() *v1.Node { return &v1.Node{} }, Clock: d.Clock}
	d.SetVerbosity = func(string) error { return nil }
	d.Page = emptyPage(*d)
}

// TestAccess requests every line of the table with every credential.
func TestAccess(t *testing.T) {
	n := start(t, true, func(c *Config, d *Deps) { c.SystemLogDir = t.TempDir(); enableAll(c, d) })
	credentials := n.credentials()
	for _, sub := range nodeSubresources {
		n.api.tokens["with "+sub], n.api.grants["with "+sub] = "with "+sub, []string{sub}
	}
	clients := map[string]*http.Client{} // each reuses its connection
	for _, row := range accessTable(t) {
		want := map[string]int{"no credential": 401, "foreign cert": 401, "expired cert": 401, "bad token": 401, "unknown cert": 403, "admin cert": row.code}
		for _, sub := range nodeSubresources {
			credentials["with "+sub] = credential{token: "with " + sub}
			want["with "+sub] = 403
			if slices.Contains(row.subresources, sub) {
				want["with "+sub] = row.code
			}
		}
		for name, code := range want {
			if clients[name] == nil {
				clients[name] = n.client(credentials[name])
				defer clients[name].CloseIdleConnections()
			}
			if got, body := n.access(clients[name], row, credentials[name]); got != code {
				t.Errorf("%s %s by %s: %d, want %d: %.200s", row.method, row.path, name, got, code, body)
			}
		}
	}
}

// access requests a line of the table.
func (n *node) access(client *http.Client, row accessRow, cred credential) (code int, body string) {
	n.t.Helper()
	if !row.upgrade {
		code, body, _ = n.request(client, "https", "10250", row.method, row.path, cred)
		return code, body
	}
	return n.webSocket(client, row.path, cred, nil)
}

// webSocket asks for a WebSocket, with further headers.
func (n *node) webSocket(client *http.Client, path string, cred credential, header http.Header) (code int, body string) {
	n.t.Helper()
	r, err := http.NewRequest(http.MethodGet, "https://"+n.ports["10250"]+path, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="} {
		r.Header.Set(name, value)
	}
	if cred.token != "" {
		r.Header.Set("Authorization", "Bearer "+cred.token)
	}
	// A connection of HTTP/2 has no upgrades.
	transport := client.Transport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2, transport.TLSClientConfig.NextProtos = false, []string{"http/1.1"}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(r)
	if err != nil {
		n.t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10)) // an upgraded connection is closed without an end
	return response.StatusCode, string(text)
}

// TestCreateForUpgrades requests the streams of the table with a token that may get nodes/proxy and with
// one that may create, with and without the option.
func TestCreateForUpgrades(t *testing.T) {
	for _, required := range []bool{false, true} {
		n := start(t, true, func(c *Config, d *Deps) { c.CreateForUpgrades = required; enableAll(c, d) })
		clients := map[string]*http.Client{}
		for _, verb := range []string{"get", "create"} {
			n.api.tokens[verb], n.api.grants[verb] = verb, []string{verb + " proxy"}
			clients[verb] = n.client(credential{})
			defer clients[verb].CloseIdleConnections()
		}
		upgrades := 0
		for _, row := range accessTable(t) {
			if !slices.Contains(row.subresources, "proxy") || verbs[row.method] == "" {
				continue
			}
			needed := verbs[row.method]
			if row.upgrade {
				upgrades++
				if required {
					needed = "create"
				}
			}
			for _, verb := range []string{"get", "create"} {
				want := 403
				if verb == needed {
					want = row.code
				}
				if got, body := n.access(clients[verb], row, credential{token: verb}); got != want {
					t.Errorf("option %t: %s %s with %s nodes/proxy: %d, want %d: %.200s", required, row.method, row.path, verb, got, want, body)
				}
			}
		}
		if upgrades == 0 {
			t.Error("the table has no upgrades")
		}
	}
}

// TestForeignOrigin: a browser that has a client certificate must not let any page use it.
func TestForeignOrigin(t *testing.T) {
	n := start(t, true, enableAll)
	admin := n.credentials()["admin cert"]
	host := n.ports["10250"]
	const exec, forward = "/exec/ns/web/main?output=1", "/portForward/ns/web?port=80"
	for name, c := range map[string]struct {
		header http.Header
		denied bool
	}{
		"no browser":                {nil, false},
		"same origin":               {http.Header{"Origin": {"https://" + host}}, false},
		"other host":                {http.Header{"Origin": {"https://evil.example"}}, true},
		"other port":                {http.Header{"Origin": {"https://127.0.0.1:1"}}, true},
		"other scheme":              {http.Header{"Origin": {"http://" + host}}, true},
		"opaque":                    {http.Header{"Origin": {"null"}}, true},
		"empty":                     {http.Header{"Origin": {""}}, true},
		"two":                       {http.Header{"Origin": {"https://" + host, "https://evil.example"}}, true},
		"host as user":              {http.Header{"Origin": {"https://" + host + "@evil.example"}}, true},
		"forwarded by API server":   {http.Header{"Origin": {"https://dashboard.example"}, "X-Forwarded-For": {"10.0.0.1"}}, false},
		"forwarded, empty address ": {http.Header{"Origin": {"https://dashboard.example"}, "X-Forwarded-For": {""}}, true},
	} {
		for _, path := range []string{exec, "/attach/ns/web/main?output=1", forward} {
			if code, body := n.webSocket(n.client(admin), path, admin, c.header); (code == 403) != c.denied {
				t.Errorf("%s, WebSocket %s: %d %s, want denied %t", name, path, code, body, c.denied)
			}
		}
		for _, request := range []string{"POST /run/ns/web/main?cmd=ls", "GET /pods"} {
			method, path, _ := strings.Cut(request, " ")
			r, err := http.NewRequest(method, "https://"+host+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(r.Header, c.header)
			client := n.client(admin)
			response, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			client.CloseIdleConnections()
			// A browser keeps the response to GET from the page.
			if want := c.denied && method == "POST"; (response.StatusCode == 403) != want {
				t.Errorf("%s, %s: %d, want denied %t", name, request, response.StatusCode, want)
			}
		}
	}
}

// TestAccessTableHasEveryRoute: each route must be in testdata/access.tsv with each of its
// methods.
func TestAccessTableHasEveryRoute(t *testing.T) {
	n := start(t, true, enableAll)
	routes := n.server.apiRoutes()
	mux := newMux(routes)
	listed := map[string]bool{}
	for _, row := range accessTable(t) {
		_, pattern := mux.Handler(httptest.NewRequest(row.method, row.path, nil))
		listed[row.method+" "+pattern] = true
	}
	for _, r := range routes {
		methods := r.methods
		if len(methods) == 0 {
			methods = []string{http.MethodGet}
		}
		for _, method := range methods {
			if !listed[method+" "+r.path] {
				t.Errorf("%s %s is served but not listed in testdata/access.tsv", method, r.path)
			}
		}
	}
}

// FuzzRequestAttributes: however a client writes a path, authorization checks the subresources
// of the route that the mux then serves.
func FuzzRequestAttributes(f *testing.F) {
	for _, path := range []string{"/exec/ns/p/c", "/metrics/../exec/ns/p/c", "/stats%2f../run/ns/p/c", "//logs/", "/pods/.", "/logs/%2e%2e/x", "/healthz/log", "/exec/metrics/stats/pods"} {
		f.Add(http.MethodGet, path)
		f.Add(http.MethodConnect, path)
	}
	var mux *http.ServeMux
	var auth *auth
	f.Fuzz(func(t *testing.T, method, path string) {
		if mux == nil {
			server := start(t, true, enableAll).server
			mux, auth = newMux(server.apiRoutes()), server.auth
		}
		address, err := url.ParseRequestURI(path)
		if err != nil {
			return // net/http rejects it
		}
		r := &http.Request{Method: method, URL: address, Host: "node-1"}
		handler, pattern := mux.Handler(r)
		if _, served := handler.(http.HandlerFunc); !served || pattern == "" {
			return // redirected or not found
		}
		got, want := auth.requestAttributes(r), auth.requestAttributes(&http.Request{Method: method, URL: &url.URL{Path: pattern}})
		if !slices.Equal(got, want) {
			t.Errorf("%s %s is served as %s and needs %v, want %v", method, path, pattern, got, want)
		}
	})
}
