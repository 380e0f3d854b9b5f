package server

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"k8s.io/streaming/pkg/httpstream"
)

// attributes are what an authorizer decides about: a verb on a subresource of the node.
type attributes struct {
	node        string
	verb        string
	subresource string
}

var verbs = map[string]string{
	http.MethodPost: "create", http.MethodGet: "get", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// subresourcesByPath maps the first segment of each path to the subresources that grant access.
func subresourcesByPath(table []route) map[string][]string {
	subresources := map[string][]string{}
	for _, r := range table {
		subresources[firstSegment(r.path)] = strings.Fields(r.subresources)
	}
	return subresources
}

// requestAttributes lists the alternatives that allow the request, the narrowest first. A path
// that is not in the route table needs nodes/proxy.
func (a *auth) requestAttributes(r *http.Request) []attributes {
	subresources, ok := a.subresources[firstSegment(r.URL.Path)]
	if !ok {
		subresources = []string{"proxy"}
	}
	// Other methods have the empty verb, which no role grants by name.
	verb := verbs[r.Method]
	if a.createForUpgrades && httpstream.IsUpgradeRequest(r) {
		verb = "create"
	}
	alternatives := make([]attributes, 0, len(subresources))
	for _, sub := range subresources {
		alternatives = append(alternatives, attributes{a.node, verb, sub})
	}
	return alternatives
}

// alwaysAllow is the authorization mode AlwaysAllow.
type alwaysAllow struct{}

func (alwaysAllow) authorize(context.Context, user, attributes) (bool, error) { return true, nil }

// mastersOnly is the authorizer of a node without an API server. It allows the one group that
// every API server allows everything.
type mastersOnly struct{}

func (mastersOnly) authorize(_ context.Context, u user, _ attributes) (bool, error) {
	return slices.Contains(u.groups, groupMasters), nil
}
