package server

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/streaming/pkg/httpstream"
)

// foreignOrigin reports whether a page of another origin in a browser asks for a stream or a change. The
// browser would authenticate it with the client certificate of its user. Pages that use the API server
// reach the node through its proxy, which adds X-Forwarded-For; a page cannot add it.
func foreignOrigin(r *http.Request) bool {
	origins := r.Header["Origin"]
	if len(origins) == 0 || r.Header.Get("X-Forwarded-For") != "" {
		return false
	}
	if (r.Method == http.MethodGet || r.Method == http.MethodHead) && !httpstream.IsUpgradeRequest(r) {
		return false // the browser keeps the response from the page
	}
	origin, err := url.Parse(origins[0])
	return err != nil || len(origins) > 1 || origin.Scheme != "https" || !strings.EqualFold(origin.Host, r.Host)
}
