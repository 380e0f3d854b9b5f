// Package server serves the kubelet's HTTPS API, the optional read-only port and the health
// check. The API server authenticates bearer tokens and authorizes requests; while it cannot
// be reached, requests are denied unless a cached decision allows them.
package server
