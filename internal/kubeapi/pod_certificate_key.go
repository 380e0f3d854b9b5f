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

// newKey generates a private key in PEM, and a PKCS #10 request as proof of possession.
func newKey(keyType string) (key, proof []byte, err error) {
	var signer crypto.Signer
	switch keyType {
	case "RSA3072":
		signer, err = rsa.GenerateKey(rand.Reader, 3072)
	case "RSA4096":
		signer, err = rsa.GenerateKey(rand.Reader, 4096)
	case "ECDSAP256":
		signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ECDSAP384":
		signer, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ECDSAP521":
		signer, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "ED25519":
		_, signer, err = ed25519.GenerateKey(rand.Reader)
	default:
		return nil, nil, fmt.Errorf("generate key: unknown key type %q", keyType)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("generate key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}
	if proof, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, signer); err != nil {
		return nil, nil, fmt.Errorf("sign request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), proof, nil
}

// cleanChain removes everything but the certificates from a PEM chain.
func cleanChain(chain []byte) []byte {
	var clean bytes.Buffer
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		_ = pem.Encode(&clean, &pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes})
	}
	return clean.Bytes()
}

// checkKeyPair checks that the chain belongs to the key, and returns when it expires.
func checkKeyPair(key, chain []byte) (notAfter time.Time, err error) {
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return time.Time{}, fmt.Errorf("check key pair: %w", err)
	}
	return pair.Leaf.NotAfter, nil
}
