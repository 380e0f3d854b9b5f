package certificate

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"slices"
	"strings"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/certificate"
	"k8s.io/klog/v2"
)

// ServingConfig says whom the node's API is served by.
type ServingConfig struct {
	NodeName string
	Dir      string
	// CertFile and KeyFile are shown until there is a certificate of the API server; may
	// be empty.
	CertFile, KeyFile string
}

// NewServing keeps the certificate that the node's API is served with. It waits for Want
// with a ServingRequest. deps.Store is not used.
func NewServing(cfg ServingConfig, deps Deps) (_ *Rotator, err error) {
	deps.Store, err = certificate.NewFileStoreWithLogger(klog.Background().V(4), "kubelet-server", cfg.Dir, cfg.Dir, cfg.CertFile, cfg.KeyFile)
	if err != nil {
		return nil, err
	}
	return New(Config{
		Name:   "serving",
		Signer: certificates.KubeletServingSignerName,
		Usages: certificate.DefaultKubeletServingGetUsages,
		Renew:  true,
	}, deps)
}

// ServingRequest asks for a certificate for the node's addresses. It is nil while there
// are none to ask for; a name alone is enough where dnsOnly says so.
func ServingRequest(node string, addresses []v1.NodeAddress, dnsOnly bool) *x509.CertificateRequest {
	request := nodeRequest(node)
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
			request.DNSNames = append(request.DNSNames, a.Address)
		default:
			request.IPAddresses = append(request.IPAddresses, ip)
		}
	}
	slices.Sort(request.DNSNames)
	request.DNSNames = slices.Compact(request.DNSNames)
	slices.SortFunc(request.IPAddresses, func(a, b net.IP) int { return strings.Compare(a.String(), b.String()) })
	request.IPAddresses = slices.CompactFunc(request.IPAddresses, net.IP.Equal)
	if len(request.IPAddresses) > 0 || dnsOnly && len(request.DNSNames) > 0 {
		return request
	}
	return nil
}

// nodeRequest is made out to a node, as the API server knows nodes.
func nodeRequest(node string) *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: pkix.Name{
		CommonName:   "system:node:" + node,
		Organization: []string{"system:nodes"},
	}}
}
