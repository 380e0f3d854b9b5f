package server

import (
	"crypto/tls"
	"strings"
	"testing"
)

// handshake is what becomes of a connection that offers no more than this.
func (n *node) handshake(offer *tls.Config) (tls.ConnectionState, error) {
	offer.InsecureSkipVerify = true
	conn, err := tls.Dial("tcp", n.ports["10250"], offer)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	return conn.ConnectionState(), nil
}

func TestConfiguredTLS(t *testing.T) {
	const only = tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
	for name, c := range map[string]struct {
		edit    func(*Config)
		offer   *tls.Config
		refused string // empty: it is accepted
	}{
		"the suite that is allowed": {func(c *Config) { c.Kubelet.TLSCipherSuites = []string{"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"} },
			&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{only}}, ""},
		"another suite": {func(c *Config) { c.Kubelet.TLSCipherSuites = []string{"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"} },
			&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}}, "handshake failure"},
		"the lowest version": {func(c *Config) { c.Kubelet.TLSMinVersion = "VersionTLS13" },
			&tls.Config{MinVersion: tls.VersionTLS13}, ""},
		"a lower version": {func(c *Config) { c.Kubelet.TLSMinVersion = "VersionTLS13" },
			&tls.Config{MaxVersion: tls.VersionTLS12}, "protocol version not supported"},
	} {
		n := start(t, true, func(cfg *Config, _ *Deps) { c.edit(cfg) })
		_, err := n.handshake(c.offer)
		if refused := err != nil; refused != (c.refused != "") || refused && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v, want %q", name, err, c.refused)
		}
	}
}

// issued is a certificate of the API server, which may not be there yet.
type issued struct{ cert *tls.Certificate }

func (i *issued) Current() *tls.Certificate { return i.cert }

// Until the certificate is issued nothing is served; one that the node made itself would
// not be believed, and one that a person once accepted would hide that it is missing.
func TestIssuedCertificate(t *testing.T) {
	certificate := &issued{}
	n := start(t, true, func(_ *Config, deps *Deps) { deps.Certificate = certificate })
	if _, err := n.handshake(&tls.Config{}); err == nil || !strings.Contains(err.Error(), "internal error") {
		t.Errorf("without a certificate: %v", err)
	}
	pair := n.ca.issue(t, "issued", nil, nil)
	certificate.cert = &pair
	if got := n.served(); got != "issued" {
		t.Errorf("serving %q", got)
	}
}
