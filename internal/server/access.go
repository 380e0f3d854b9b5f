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

// subresourcesOf maps the first segment of each path to the subresources that open it.
func subresourcesOf(table []route) map[string][]string {
	opens := map[string][]string{}
	for _, r := range table {
		opens[firstSegment(r.path)] = strings.Fields(r.subresources)
	}
	return opens
}

// accessTo lists the rights any one of which lets the request pass, the narrowest first. A
// path that is not in the route table needs nodes/proxy.
func (g *guard) accessTo(r *http.Request) []access {
	opens, ok := g.subresources[firstSegment(r.URL.Path)]
	if !ok {
		opens = []string{"proxy"}
	}
	// A method that has no verb is asked about with none, which no role allows by name.
	verb := verbs[r.Method]
	wanted := make([]access, 0, len(opens))
	for _, sub := range opens {
		wanted = append(wanted, access{g.node, verb, sub})
	}
	return wanted
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
