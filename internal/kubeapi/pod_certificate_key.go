package kubeapi

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"
)

// newKey makes a key of the type, in PEM, and a proof that we have it.
func newKey(keyType string) (key, proof []byte, err error) {
	var made crypto.Signer
	switch keyType {
	case "RSA3072":
		made, err = rsa.GenerateKey(rand.Reader, 3072)
	case "RSA4096":
		made, err = rsa.GenerateKey(rand.Reader, 4096)
	case "ECDSAP256":
		made, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ECDSAP384":
		made, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ECDSAP521":
		made, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "ED25519":
		_, made, err = ed25519.GenerateKey(rand.Reader)
	default:
		return nil, nil, fmt.Errorf("unknown key type %q", keyType)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(made)
	if err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}
	if proof, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, made); err != nil {
		return nil, nil, fmt.Errorf("sign request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), proof, nil
}

// cleanChain drops everything from a chain that is not a certificate's content.
func cleanChain(chain []byte) []byte {
	var clean bytes.Buffer
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		_ = pem.Encode(&clean, &pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes})
	}
	return clean.Bytes()
}

// pairs checks that the chain is for the key and says when it ends.
func pairs(key, chain []byte) (notAfter time.Time, err error) {
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return time.Time{}, fmt.Errorf("read certificate: %w", err)
	}
	return pair.Leaf.NotAfter, nil
}
