package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	cliflag "k8s.io/component-base/cli/flag"

	"swiftlet/internal/certificate"
)

// Certifier has the certificate of the moment; nil while there is none yet.
type Certifier interface {
	Current() *tls.Certificate
}

// tlsConfig makes the TLS settings, and the certificate where none was given.
func (s *Server) tlsConfig() (*tls.Config, error) {
	kc := s.cfg.Kubelet
	minVersion, err := cliflag.TLSVersion(kc.TLSMinVersion)
	if err != nil {
		return nil, fmt.Errorf("set up TLS: %w", err)
	}
	suites, err := cliflag.TLSCipherSuites(kc.TLSCipherSuites)
	if err != nil {
		return nil, fmt.Errorf("set up TLS: %w", err)
	}
	s.judgeSuites(minVersion, suites)
	curves, err := cliflag.TLSCurvePreferences(kc.TLSCurvePreferences)
	if err != nil {
		return nil, fmt.Errorf("set up TLS: %w", err)
	}
	current, err := s.certificate()
	if err != nil {
		return nil, fmt.Errorf("set up TLS: %w", err)
	}
	config := &tls.Config{
		MinVersion:       minVersion,
		CipherSuites:     suites,
		CurvePreferences: curves,
		// HTTP/2 is left to clients that need no stream upgrade; they choose.
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if cert := current(); cert != nil {
				return cert, nil
			}
			return nil, errors.New("there is no serving certificate yet")
		},
	}
	if s.guard.ca != nil {
		// Certificates are verified by the guard, which can still serve a good token
		// beside a bad certificate.
		config.ClientAuth = tls.RequestClientCert
	}
	return config, nil
}

// judgeSuites says where the choice of cipher suites is a bad one or has no effect.
func (s *Server) judgeSuites(minVersion uint16, suites []uint16) {
	for name, id := range cliflag.InsecureTLSCiphers() {
		if slices.Contains(suites, id) {
			s.deps.Log.Warn("tlsCipherSuites allows an insecure cipher", "suite", name)
		}
	}
	if minVersion == tls.VersionTLS13 && len(suites) > 0 {
		s.deps.Log.Warn("tlsCipherSuites has no effect: those of TLS 1.3 cannot be chosen")
	}
}

// certificate finds where the serving certificate comes from.
func (s *Server) certificate() (func() *tls.Certificate, error) {
	kc := s.cfg.Kubelet
	if s.deps.Certificate != nil {
		return s.deps.Certificate.Current, nil
	}
	certFile, keyFile := kc.TLSCertFile, kc.TLSPrivateKeyFile
	if certFile == "" && keyFile == "" {
		certFile, keyFile = filepath.Join(s.cfg.CertDir, "kubelet.crt"), filepath.Join(s.cfg.CertDir, "kubelet.key")
		if err := ensureSelfSigned(s.cfg.NodeName, certFile, keyFile, s.deps.Clock.Now()); err != nil {
			return nil, err
		}
	}
	pair, err := certificate.Load(s.deps.Log, func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		return &pair, err
	}, certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("load serving certificate %s with key %s: %w", certFile, keyFile, err)
	}
	return pair.Current, nil
}

// ensureSelfSigned makes a certificate for host unless the files hold one that is valid.
func ensureSelfSigned(host, certFile, keyFile string, now time.Time) error {
	if pair, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil && pair.Leaf.NotAfter.After(now) {
		return nil
	}
	cert, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	if err := keyutil.WriteKey(keyFile, key); err != nil {
		return fmt.Errorf("keep the certificate's key: %w", err)
	}
	if err := certutil.WriteCert(certFile, cert); err != nil {
		return fmt.Errorf("keep the certificate: %w", err)
	}
	return nil
}

// newClientCA reads the authorities that sign client certificates, anew when they change.
func newClientCA(file string, log *slog.Logger) (*certificate.Reloaded[x509.CertPool], error) {
	ca, err := certificate.Load(log, func() (*x509.CertPool, error) { return certutil.NewPool(file) }, file)
	if err != nil {
		return nil, fmt.Errorf("load client CA: %w", err)
	}
	return ca, nil
}
