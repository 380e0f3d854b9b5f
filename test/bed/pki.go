package bed

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// authority is the certificate authority of a bed. All its files are in one directory.
type authority struct {
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// keyPair is a certificate and its key as files.
type keyPair struct{ cert, key string }

func (k keyPair) read() (cert, key []byte, err error) {
	if cert, err = os.ReadFile(k.cert); err != nil {
		return nil, nil, fmt.Errorf("read certificate: %w", err)
	}
	if key, err = os.ReadFile(k.key); err != nil {
		return nil, nil, fmt.Errorf("read key: %w", err)
	}
	return cert, key, nil
}

func newAuthority(dir string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	template := certificate(pkix.Name{CommonName: "swiftlet-bed"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	a := &authority{dir: dir, key: key, cert: template}
	pair, err := a.sign("ca", template, key)
	if err != nil {
		return nil, err
	}
	text, _, err := pair.read()
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	a.cert, err = x509.ParseCertificate(block.Bytes)
	return a, err
}

func (a *authority) caFile() string { return filepath.Join(a.dir, "ca.crt") }

// client issues a client certificate for a user and its groups.
func (a *authority) client(file, user string, groups ...string) (keyPair, error) {
	template := certificate(pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(file, template)
}

// serving issues a serving certificate for names and addresses.
func (a *authority) serving(file string, hosts ...string) (keyPair, error) {
	template := certificate(pkix.Name{CommonName: file})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.issue(file, template)
}

func certificate(subject pkix.Name) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil { // crypto/rand does not fail
		panic(err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
}

func (a *authority) issue(file string, template *x509.Certificate) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("make key of %s: %w", file, err)
	}
	return a.sign(file, template, key)
}

func (a *authority) sign(file string, template *x509.Certificate, key *ecdsa.PrivateKey) (keyPair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("sign certificate of %s: %w", file, err)
	}
	pair := keyPair{cert: filepath.Join(a.dir, file+".crt"), key: filepath.Join(a.dir, file+".key")}
	if err := writePEM(pair.cert, "CERTIFICATE", der); err != nil {
		return keyPair{}, err
	}
	return pair, writeKey(pair.key, key)
}

// serviceAccountKey creates the key that signs service account tokens.
func (a *authority) serviceAccountKey() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("make service account key: %w", err)
	}
	path := filepath.Join(a.dir, "service-accounts.key")
	return path, writeKey(path, key)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", kind, err)
	}
	return nil
}

// httpClient trusts the authority and has no client certificate.
func (a *authority) httpClient() (*http.Client, error) {
	text, err := readFile(a.caFile())
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}, nil
}
