// Package pki creates the certificate authority of a node, the certificates that its programs identify
// themselves with, and kubeconfigs. Files have the names that kubeadm gives them. What exists is kept until
// it expires soon, so that the agent and the API server can share a directory.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	caLife   = 10 * 365 * 24 * time.Hour
	leafLife = 365 * 24 * time.Hour
	// renewBefore leaves scripts time to load the renewed certificate.
	renewBefore = 30 * 24 * time.Hour
)

// masters is the group that RBAC never denies anything.
const masters = "system:masters"

// DNSUser is the user of swiftlet-dns.
const DNSUser = "system:coredns"

// Config says for which node the files are.
type Config struct {
	Dir       string
	Node      string
	Addresses []net.IP // those of the API server
}

// authority issues certificates.
type authority struct {
	dir         string
	certificate *x509.Certificate
	key         crypto.Signer
}

// leaf describes a certificate that the authority issues.
type leaf struct {
	name, common, group string
	hosts               []string // of a server
	addresses           []net.IP
}

// Ensure creates what is missing, or expires soon.
func Ensure(c Config, now time.Time) error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("create certificates: %w", err)
	}
	if err := syncDirectory(filepath.Dir(c.Dir)); err != nil {
		return fmt.Errorf("create certificates: %w", err)
	}
	ca, err := ensureAuthority(c.Dir, now)
	if err != nil {
		return fmt.Errorf("create certificate authority: %w", err)
	}
	for _, l := range []leaf{
		{name: "apiserver", common: "kube-apiserver", addresses: c.Addresses,
			hosts: []string{"localhost", c.Node, "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}},
		{name: "apiserver-kubelet-client", common: "kube-apiserver-kubelet-client", group: masters},
		{name: "admin", common: "swiftlet-admin", group: masters},
		{name: "kubelet", common: "system:node:" + c.Node, group: "system:nodes"},
		{name: "dns", common: DNSUser},
	} {
		if ca.usable(l, now) {
			continue
		}
		if err := ca.issue(l, now); err != nil {
			return fmt.Errorf("create %s certificate: %w", l.name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "sa.key")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err = ca.writeKey("sa")
	return err
}

func ensureAuthority(dir string, now time.Time) (*authority, error) {
	ca := &authority{dir: dir}
	pair, err := tls.LoadX509KeyPair(ca.file("ca.crt"), ca.file("ca.key"))
	if errors.Is(err, fs.ErrNotExist) {
		return ca, ca.create(now)
	}
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s cannot sign", ca.file("ca.key"))
	}
	ca.certificate, ca.key = pair.Leaf, key
	return ca, nil
}

func (a *authority) create(now time.Time) error {
	key, err := a.writeKey("ca")
	if err != nil {
		return err
	}
	template := newTemplate(now, caLife, pkix.Name{CommonName: "swiftlet"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	a.certificate, a.key = template, key
	a.certificate, err = a.sign("ca", template, key)
	return err
}

// usable reports whether the files hold such a certificate of this authority that does not expire soon.
func (a *authority) usable(l leaf, now time.Time) bool {
	pair, err := tls.LoadX509KeyPair(a.file(l.name+".crt"), a.file(l.name+".key"))
	if err != nil || pair.Leaf.CheckSignatureFrom(a.certificate) != nil || pair.Leaf.NotAfter.Before(now.Add(renewBefore)) {
		return false
	}
	if l.hosts == nil {
		return pair.Leaf.Subject.CommonName == l.common
	}
	for _, host := range l.hosts {
		if pair.Leaf.VerifyHostname(host) != nil {
			return false
		}
	}
	for _, address := range l.addresses {
		if pair.Leaf.VerifyHostname(address.String()) != nil {
			return false
		}
	}
	return true
}

// issue writes the key first, so that there is never a certificate without its key.
func (a *authority) issue(l leaf, now time.Time) error {
	key, err := a.writeKey(l.name)
	if err != nil {
		return err
	}
	template := newTemplate(now, leafLife, pkix.Name{CommonName: l.common})
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if l.group != "" {
		template.Subject.Organization = []string{l.group}
	}
	if l.hosts != nil {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		template.DNSNames, template.IPAddresses = l.hosts, l.addresses
	}
	_, err = a.sign(l.name, template, key)
	return err
}

func (a *authority) sign(name string, template *x509.Certificate, key crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("generate serial number: %w", err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	content, err := cert.EncodeCertificates(signed)
	if err != nil {
		return nil, err
	}
	return signed, replaceFile(a.file(name+".crt"), content, private)
}

func (a *authority) writeKey(name string) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	content, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return key, replaceFile(a.file(name+".key"), content, private)
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func newTemplate(now time.Time, life time.Duration, subject pkix.Name) *x509.Certificate {
	return &x509.Certificate{Subject: subject, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(life)}
}
