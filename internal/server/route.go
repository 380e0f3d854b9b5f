package server

import (
	"net/http"
	"slices"
	"strings"
)

// route is a row of the route table (routes.go). The muxes of the ports, authorization, the
// labels of request metrics and /statusz all derive from the table.
type route struct {
	// path is a pattern of http.ServeMux without a method.
	path string
	// methods are the allowed methods; nil allows all.
	methods []string
	// subresources of nodes, separated by spaces, the narrowest first. A client needs a grant
	// of one of them. Routes with the same first path segment have the same subresources.
	subresources string
	traits       trait
	enabled      toggle
	handler      http.HandlerFunc
}

// trait is a set of yes-or-no columns.
type trait uint8

const (
	// readOnlyPort routes are served by the read-only port as well.
	readOnlyPort trait = 1 << iota
	// debugging routes are served only while enableDebuggingHandlers is true.
	debugging
	// explained routes answer that debugging handlers are disabled where they are not served.
	// The others are then not found.
	explained
	// longRunning routes have the label long_running="true" in request metrics. Routes with
	// the same first path segment agree on it.
	longRunning
	// unlabelled routes have the path label "other" in request metrics.
	unlabelled
)

func (t trait) has(one trait) bool { return t&one != 0 }

// toggle is the feature gate or configuration field that enables a route.
type toggle struct {
	on bool
	// disabled is the answer while the toggle is off. If it is empty, the path is not found.
	disabled string
}

var always = toggle{on: true}

var (
	get       = []string{http.MethodGet}
	post      = []string{http.MethodPost}
	getOrPost = []string{http.MethodGet, http.MethodPost}
)

// newMux serves the routes. It refuses a method that a route does not allow instead of
// leaving that to http.ServeMux, which answers HEAD wherever it answers GET.
func newMux(routes []route) *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.HandleFunc(r.path, r.serve)
	}
	return mux
}

func (r route) serve(w http.ResponseWriter, request *http.Request) {
	if len(r.methods) > 0 && !slices.Contains(r.methods, request.Method) {
		w.Header().Set("Allow", strings.Join(r.methods, ", "))
		fail(w, http.StatusMethodNotAllowed, "405: Method Not Allowed")
		return
	}
	r.handler(w, request)
}

// selectRoutes returns the routes that a port serves, and a refusal for each route that the
// port leaves out but explains.
func selectRoutes(table []route, serves func(trait) bool) []route {
	var selected []route
	refused := map[string]bool{}
	for _, r := range table {
		switch prefix := literalPrefix(r.path); {
		case serves(r.traits) && r.enabled.on:
			selected = append(selected, r)
		case serves(r.traits) && r.enabled.disabled != "":
			selected = append(selected, route{path: r.path, handler: disabled(r.enabled.disabled)})
		case !serves(r.traits) && r.traits.has(explained) && !refused[prefix]:
			refused[prefix] = true
			selected = append(selected, route{path: prefix, handler: disabled("Debug endpoints are disabled.")})
		}
	}
	return selected
}

func disabled(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, http.StatusMethodNotAllowed) }
}

// literalPrefix is the pattern up to its first wildcard.
func literalPrefix(pattern string) string {
	prefix, _, _ := strings.Cut(pattern, "{")
	return prefix
}

// firstSegment is the first part of a path, without slashes.
func firstSegment(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first
}
