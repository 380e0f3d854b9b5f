// Package nodeproxy serves the subresource proxy of this node. That of kube-apiserver rejects nodes whose name
// resolves to a loopback address, as that of a Debian machine does on itself, or to none. The kubelet of a lone
// node listens on loopback alone.
package nodeproxy

import (
	"net"
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// Config has what a Proxy needs.
type Config struct {
	Node string
	// Nodes has the port of the kubelet.
	Nodes corelisters.NodeLister
	// Transport connects to the kubelet by the name of the node, and authenticates this program.
	Transport http.RoundTripper
	// Errors encodes the errors of the proxy.
	Errors runtime.NegotiatedSerializer
}

// Wrap returns a handler that proxies requests for the kubelet and leaves all others to next. It must be behind
// authorization.
func Wrap(c Config, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || info.APIGroup != "" || info.Resource != "nodes" || info.Subresource != "proxy" {
			next.ServeHTTP(w, r)
			return
		}
		_, name, port, valid := utilnet.SplitSchemeNamePort(info.Name)
		node, err := c.Nodes.Get(name)
		if !valid || name != c.Node || err != nil {
			next.ServeHTTP(w, r) // which has the error
			return
		}
		kubelet := strconv.Itoa(int(node.Status.DaemonEndpoints.KubeletEndpoint.Port))
		if port != "" && port != kubelet {
			next.ServeHTTP(w, r)
			return
		}
		location := &url.URL{Scheme: "https", Host: net.JoinHostPort(name, kubelet), Path: path(info)}
		proxy.NewUpgradeAwareHandler(location, c.Transport, true, false, c).ServeHTTP(w, r)
	})
}

// path is the part of the request that is the kubelet's. Parts are the resource, the name, and what follows.
func path(info *request.RequestInfo) string {
	const prefix = "/proxy"
	all := info.Path
	start := len(info.APIPrefix) + len(info.APIVersion) + len(info.Parts[0]) + len(info.Parts[1]) + 4 + len(prefix)
	if start >= len(all) {
		return "/"
	}
	return all[start:]
}

// Error answers a request that does not reach the kubelet.
func (c Config) Error(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(apierrors.NewServiceUnavailable(err.Error()), c.Errors, corev1.SchemeGroupVersion, w, r)
}
