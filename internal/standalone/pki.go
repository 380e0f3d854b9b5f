package standalone

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"time"
)

const (
	caLife   = 10 * 365 * 24 * time.Hour
	leafLife = 365 * 24 * time.Hour
	// renewBefore leaves scripts time to load the renewed certificate.
	renewBefore = 30 * 24 * time.Hour
)

// credential describes a certificate that the CA issues.
type credential struct {
	name    string
	subject pkix.Name
	usage   x509.ExtKeyUsage
	serving bool // has this node's names and addresses
}

// ensurePKI creates the CA, the agent's serving certificate and one client certificate if they
// are missing or expire soon. The agent trusts only this CA, so only holders of the client key
// have access. Only root can read the key.
func ensurePKI(p Paths, node string, now time.Time) error {
	ca, caKey, err := ensureCA(p, now)
	if err != nil {
		return fmt.Errorf("create certificate authority: %w", err)
	}
	for _, c := range []credential{
		{name: "serving", subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}, usage: x509.ExtKeyUsageServerAuth, serving: true},
		{name: "admin", subject: pkix.Name{CommonName: "swiftlet-admin", Organization: []string{"system:masters"}}, usage: x509.ExtKeyUsageClientAuth},
	} {
		if certificateUsable(p, c, ca, node, now) {
			continue
		}
		template := certificate(c.subject, now, leafLife)
		template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{c.usage}
		if c.serving {
			template.DNSNames = []string{"localhost", node}
			template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
		}
		if err := issue(p, c.name, template, ca, caKey); err != nil {
			return fmt.Errorf("create %s certificate: %w", c.name, err)
		}
	}
	return nil
}

func ensureCA(p Paths, now time.Time) (*x509.Certificate, any, error) {
	if pair, err := tls.LoadX509KeyPair(p.pki("ca.crt"), p.pki("ca.key")); err == nil {
		if pair.Leaf.NotAfter.After(now.Add(leafLife + renewBefore)) {
			return pair.Leaf, pair.PrivateKey, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("read %s and %s: %w", p.pki("ca.crt"), p.pki("ca.key"), err)
	}
	template := certificate(pkix.Name{CommonName: "swiftlet standalone"}, now, caLife)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	if err := issue(p, "ca", template, template, nil); err != nil {
		return nil, nil, err
	}
	pair, err := tls.LoadX509KeyPair(p.pki("ca.crt"), p.pki("ca.key"))
	return pair.Leaf, pair.PrivateKey, err
}

// certificateUsable reports whether the files hold a certificate of this CA, for this node,
// that does not expire soon.
func certificateUsable(p Paths, c credential, ca *x509.Certificate, node string, now time.Time) bool {
	pair, err := tls.LoadX509KeyPair(p.pki(c.name+".crt"), p.pki(c.name+".key"))
	if err != nil || pair.Leaf.CheckSignatureFrom(ca) != nil || pair.Leaf.NotAfter.Before(now.Add(renewBefore)) {
		return false
	}
	return !c.serving || pair.Leaf.VerifyHostname(node) == nil
}

func certificate(subject pkix.Name, now time.Time, life time.Duration) *x509.Certificate {
	return &x509.Certificate{Subject: subject, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(life)}
}

// issue signs the template with parent's key, or with its own if parentKey is nil. It writes
// the key first, so that there is never a certificate without its key.
func issue(p Paths, name string, template, parent *x509.Certificate, parentKey any) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generate key: %w", err)
	}
	if parentKey == nil {
		parentKey = key
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return fmt.Errorf("generate serial number: %w", err)
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return fmt.Errorf("sign certificate: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	for _, f := range []struct {
		file, kind string
		bytes      []byte
	}{
		{p.pki(name + ".key"), "PRIVATE KEY", der},
		{p.pki(name + ".crt"), "CERTIFICATE", cert},
	} {
		if _, err := writeIfChanged(f.file, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.bytes}), 0o600); err != nil {
			return err
		}
	}
	return nil
}
