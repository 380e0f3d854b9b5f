package certificate

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// FuzzKubeconfig: a kubeconfig with any content is a configuration or an error.
func FuzzKubeconfig(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: https://192.0.2.1}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n" +
		"current-context: x\nusers: [{name: u, user: {client-certificate-data: AA==, client-key-data: AA==}}]\n"))
	f.Add([]byte("clusters: 5\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		config, err := readKubeconfig(path)
		if err != nil {
			return
		}
		if config.Host == "" {
			t.Error("a configuration without a server was accepted")
		}
		if checkPair(config, time.Now()) == nil {
			t.Log("the kubeconfig has a valid certificate")
		}
	})
}

// FuzzExpiry: PEM files with any content are a certificate or an error.
func FuzzExpiry(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN EC PRIVATE KEY-----\nMAA=\n-----END EC PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, cert, key []byte) {
		dir := t.TempDir()
		certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
		if err := os.WriteFile(certFile, cert, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(keyFile, key, 0o600); err != nil {
			t.Fatal(err)
		}
		config := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CertFile: certFile, KeyFile: keyFile}}
		pair, err := loadPair(config)
		if err == nil && len(pair.Certificate) == 0 {
			t.Error("a pair without a certificate was accepted")
		}
		_ = checkPair(config, time.Now())
	})
}
