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
	rights       []string
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

// rightsOfNodes are the subresources of nodes that may be given.
var rightsOfNodes = []string{"stats", "metrics", "log", "healthz", "pods", "configz", "checkpoint", "statusz", "proxy", "status"}

// everything switches all paths on.
func everything(c *Config, d *Deps) {
	c.AllocatedPods, c.Checkpoints, c.Statusz, c.Flagz, c.CheckpointDir = true, true, true, true, "/none"
	*c.Kubelet.EnableSystemLogQuery = true
	d.Checks = []Check{{"syncloop", alwaysHealthy}}
	d.SetVerbosity = func(string) error { return nil }
}

// TestAccess asks for every line of the table with every credential.
func TestAccess(t *testing.T) {
	n := start(t, true, func(c *Config, d *Deps) { c.SystemLogDir = t.TempDir(); everything(c, d) })
	who := n.credentials()
	for _, right := range rightsOfNodes {
		n.api.tokens["with "+right], n.api.may["with "+right] = "with "+right, []string{right}
	}
	clients := map[string]*http.Client{} // each keeps its connection
	for _, row := range accessTable(t) {
		want := map[string]int{"nobody": 401, "foreign cert": 401, "expired cert": 401, "bad token": 401, "unknown cert": 403, "admin cert": row.code}
		for _, right := range rightsOfNodes {
			who["with "+right] = credential{token: "with " + right}
			want["with "+right] = 403
			if slices.Contains(row.rights, right) {
				want["with "+right] = row.code
			}
		}
		for name, code := range want {
			if clients[name] == nil {
				clients[name] = n.client(who[name])
				defer clients[name].CloseIdleConnections()
			}
			if got, body, _ := n.ask(clients[name], "https", "10250", row.method, row.path, who[name]); got != code {
				t.Errorf("%s %s by %s: %d, want %d: %.200s", row.method, row.path, name, got, code, body)
			}
		}
	}
}

// TestAccessTableHasEveryRoute keeps a new path from being forgotten: what the mux serves,
// by each method, must be in the table.
func TestAccessTableHasEveryRoute(t *testing.T) {
	n := start(t, true, everything)
	routes := n.server.apiRoutes()
	mux := newMux(routes)
	asked := map[string]bool{}
	for _, row := range accessTable(t) {
		_, pattern := mux.Handler(httptest.NewRequest(row.method, row.path, nil))
		asked[row.method+" "+pattern] = true
	}
	for _, r := range routes {
		methods := r.methods
		if len(methods) == 0 {
			methods = []string{http.MethodGet}
		}
		for _, method := range methods {
			if !asked[method+" "+r.path] {
				t.Errorf("%s %s is served, but testdata/access.tsv does not say who may", method, r.path)
			}
		}
	}
}

// FuzzAccessTo holds that however a path is spelled, the guard asks for the rights to what
// the mux then serves.
func FuzzAccessTo(f *testing.F) {
	for _, path := range []string{"/exec/ns/p/c", "/metrics/../exec/ns/p/c", "/stats%2f../run/ns/p/c", "//logs/", "/pods/.", "/logs/%2e%2e/x", "/healthz/log", "/exec/metrics/stats/pods"} {
		f.Add(http.MethodGet, path)
		f.Add(http.MethodConnect, path)
	}
	var mux *http.ServeMux
	var guard *guard
	f.Fuzz(func(t *testing.T, method, path string) {
		if mux == nil {
			server := start(t, true, everything).server
			mux, guard = newMux(server.apiRoutes()), server.guard
		}
		address, err := url.ParseRequestURI(path)
		if err != nil {
			return // no server takes it
		}
		r := &http.Request{Method: method, URL: address, Host: "node-1"}
		handler, pattern := mux.Handler(r)
		if _, served := handler.(http.HandlerFunc); !served || pattern == "" {
			return // sent elsewhere, or not found
		}
		got, want := guard.accessTo(r), guard.accessTo(&http.Request{Method: method, URL: &url.URL{Path: pattern}})
		if !slices.Equal(got, want) {
			t.Errorf("%s %s is served as %s and asks for %v; want %v", method, path, pattern, got, want)
		}
	})
}
