package server

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// accessRow is a line of testdata/access.tsv.
type accessRow struct {
	method, path string
	subresources []string
	code         int
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
		rows = append(rows, accessRow{method, path, strings.Fields(cells[1]), code})
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
	d.SetVerbosity = func(string) error { return nil }
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
			if got, body, _ := n.request(clients[name], "https", "10250", row.method, row.path, credentials[name]); got != code {
				t.Errorf("%s %s by %s: %d, want %d: %.200s", row.method, row.path, name, got, code, body)
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
