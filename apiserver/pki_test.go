package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// pki is a directory of certificates as `swiftlet up` makes it.
type pki struct {
	t   *testing.T
	dir string
	ca  *x509.Certificate
	key crypto.Signer
}

func newPKI(t *testing.T) *pki {
	p := &pki{t: t, dir: t.TempDir()}
	p.issue("ca", x509.Certificate{Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	p.issue("apiserver", x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	p.issue("apiserver-kubelet-client", client("apiserver-kubelet-client", "system:masters"))
	p.issue("admin", client("admin", "system:masters"))
	p.issue("kubelet", client("system:node:"+nodeName, "system:nodes"))
	p.issue("sa", client("", "")) // only the key is used
	return p
}

func client(name, group string) x509.Certificate {
	return x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: []string{group}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
}

func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

// issue writes NAME.crt and NAME.key. The first certificate is the CA.
func (p *pki) issue(name string, template x509.Certificate) {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	if p.ca == nil {
		p.ca, p.key = &template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, p.ca, key.Public(), p.key)
	if err != nil {
		p.t.Fatal(err)
	}
	if p.ca == &template {
		if p.ca, err = x509.ParseCertificate(der); err != nil {
			p.t.Fatal(err)
		}
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(name+".crt", "CERTIFICATE", der)
	p.write(name+".key", "EC PRIVATE KEY", private)
}

// request returns a certificate request in PEM.
func (p *pki) request(name string) []byte {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		p.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func (p *pki) write(name, kind string, der []byte) {
	p.t.Helper()
	if err := os.WriteFile(p.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		p.t.Fatal(err)
	}
}
