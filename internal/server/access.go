package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// access is what a request wants: to do verb to a subresource of the node.
type access struct {
	node        string
	verb        string
	subresource string
}

var verbs = map[string]string{
	http.MethodPost: "create", http.MethodGet: "get", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// Paths and the subresource of nodes that gives the right to them. Those of fineGrained
// were once reached with nodes/proxy alone, so that still opens them; those of own are
// opened by nothing else. All other paths are nodes/proxy.
var (
	fineGrained = map[string]string{"/pods": "pods", "/allocatedPods": "pods", "/runningpods": "pods", "/healthz": "healthz", "/configz": "configz"}
	own         = map[string]string{"/stats": "stats", "/metrics": "metrics", "/logs": "log", "/checkpoint": "checkpoint", "/statusz": "statusz", "/flagz": "configz"}
)

// accessTo lists the rights any one of which lets the request pass, the narrowest first.
func accessTo(node string, r *http.Request) []access {
	// A method that has no verb is asked about with none, which no role allows by name.
	verb := verbs[r.Method]
	if sub, ok := subresource(own, r.URL.Path); ok {
		return []access{{node, verb, sub}}
	}
	wanted := []access{{node, verb, "proxy"}}
	if sub, ok := subresource(fineGrained, r.URL.Path); ok {
		wanted = slices.Insert(wanted, 0, access{node, verb, sub})
	}
	return wanted
}

// subresource looks the path's first part up.
func subresource(paths map[string]string, path string) (string, bool) {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	sub, ok := paths["/"+first]
	return sub, ok
}

// everyone is the authorization mode AlwaysAllow.
type everyone struct{}

func (everyone) allow(context.Context, identity, access) (bool, error) { return true, nil }

// mastersOnly stands in for an API server where there is none: it knows the one group
// that every API server allows everything.
type mastersOnly struct{}

func (mastersOnly) allow(_ context.Context, who identity, _ access) (bool, error) {
	return slices.Contains(who.groups, groupMasters), nil
}
