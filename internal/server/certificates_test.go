package server

import (
	"crypto/tls"
	"strings"
	"testing"
)

// handshake connects with the given client configuration.
func (n *node) handshake(client *tls.Config) (tls.ConnectionState, error) {
	client.InsecureSkipVerify = true
	conn, err := tls.Dial("tcp", n.ports["10250"], client)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	return conn.ConnectionState(), nil
}

func TestConfiguredTLS(t *testing.T) {
	const only = tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
	for name, c := range map[string]struct {
		edit   func(*Config)
		client *tls.Config
		err    string // empty if the connection is accepted
	}{
		"configured cipher suite": {func(c *Config) { c.Kubelet.TLSCipherSuites = []string{"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"} },
			&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{only}}, ""},
		"other cipher suite": {func(c *Config) { c.Kubelet.TLSCipherSuites = []string{"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"} },
			&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}}, "handshake failure"},
		"minimum version": {func(c *Config) { c.Kubelet.TLSMinVersion = "VersionTLS13" },
			&tls.Config{MinVersion: tls.VersionTLS13}, ""},
		"below minimum version": {func(c *Config) { c.Kubelet.TLSMinVersion = "VersionTLS13" },
			&tls.Config{MaxVersion: tls.VersionTLS12}, "protocol version not supported"},
	} {
		n := start(t, true, func(cfg *Config, _ *Deps) { c.edit(cfg) })
		_, err := n.handshake(c.client)
		if failed := err != nil; failed != (c.err != "") || failed && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
	}
}

// issuedCertificate is a certificate of the API server; nil before it is issued.
type issuedCertificate struct{ cert *tls.Certificate }

func (i *issuedCertificate) Current() *tls.Certificate { return i.cert }

// Before the certificate is issued the server refuses connections. Clients would not trust a
// self-signed certificate, and one that a person has accepted would hide that it is missing.
func TestIssuedCertificate(t *testing.T) {
	certificate := &issuedCertificate{}
	n := start(t, true, func(_ *Config, deps *Deps) { deps.Certificate = certificate })
	if _, err := n.handshake(&tls.Config{}); err == nil || !strings.Contains(err.Error(), "internal error") {
		t.Errorf("without a certificate: %v", err)
	}
	pair := n.ca.issue(t, "issued", nil, nil)
	certificate.cert = &pair
	if got := n.servedName(); got != "issued" {
		t.Errorf("serving %q", got)
	}
}
