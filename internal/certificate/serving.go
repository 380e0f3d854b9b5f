package certificate

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"slices"
	"strings"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
)

// ServingConfig configures the certificate with which the kubelet serves its own API.
type ServingConfig struct {
	Dir string // holds the certificate store
	// CertFile and KeyFile are used until the API server has issued a certificate; may be empty.
	CertFile, KeyFile string
}

// NewServing returns a Rotator of the kubelet's serving certificate. It requests none until
// SetTemplate is called with a ServingTemplate. NewServing sets deps.Store.
func NewServing(cfg ServingConfig, deps Deps) (_ *Rotator, err error) {
	deps.Store, err = newFileStore(fileStore{dir: cfg.Dir, prefix: "kubelet-server", certFile: cfg.CertFile, keyFile: cfg.KeyFile, clock: deps.Clock, log: deps.Log})
	if err != nil {
		return nil, fmt.Errorf("open certificates in %s: %w", cfg.Dir, err)
	}
	return New(Config{
		Name:   "serving",
		Signer: certificates.KubeletServingSignerName,
		Usages: servingUsages,
		Renew:  true,
	}, deps)
}

// RequestFor returns a function that requests a certificate for the node's addresses; nil where
// r is. dnsOnly allows a certificate for DNS names alone.
func (r *Rotator) RequestFor(node string, dnsOnly bool) func([]v1.NodeAddress) {
	if r == nil {
		return nil
	}
	return func(addresses []v1.NodeAddress) { r.SetTemplate(ServingTemplate(node, addresses, dnsOnly)) }
}

// ServingTemplate returns the request of a certificate for the node's addresses. It is nil while
// the node has no IP address, unless dnsOnly allows a certificate for DNS names alone.
func ServingTemplate(node string, addresses []v1.NodeAddress, dnsOnly bool) *x509.CertificateRequest {
	template := nodeTemplate(node)
	for _, a := range addresses {
		ip := net.ParseIP(a.Address)
		switch a.Type {
		case v1.NodeInternalIP, v1.NodeExternalIP:
			if ip == nil {
				continue
			}
		case v1.NodeInternalDNS, v1.NodeExternalDNS:
			ip = nil
		case v1.NodeHostName:
		default:
			continue
		}
		switch {
		case a.Address == "":
		case ip == nil:
			template.DNSNames = append(template.DNSNames, a.Address)
		default:
			template.IPAddresses = append(template.IPAddresses, ip)
		}
	}
	slices.Sort(template.DNSNames)
	template.DNSNames = slices.Compact(template.DNSNames)
	slices.SortFunc(template.IPAddresses, func(a, b net.IP) int { return strings.Compare(a.String(), b.String()) })
	template.IPAddresses = slices.CompactFunc(template.IPAddresses, net.IP.Equal)
	if len(template.IPAddresses) > 0 || dnsOnly && len(template.DNSNames) > 0 {
		return template
	}
	return nil
}

// nodeTemplate returns a request with the subject by which the API server authorizes a node.
func nodeTemplate(node string) *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: pkix.Name{
		CommonName:   "system:node:" + node,
		Organization: []string{"system:nodes"},
	}}
}
