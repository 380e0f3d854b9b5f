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
	kubelet "k8s.io/kubelet/config/v1beta1"

	"swiftlet/internal/certificate"
	"swiftlet/internal/config"
	"swiftlet/internal/connlimit"
)

// CertificateSource returns the current certificate, or nil before the first is issued.
type CertificateSource interface {
	Current() *tls.Certificate
}

// tlsConfig returns the TLS configuration. It creates a self-signed certificate if none is
// configured.
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
	s.warnCipherSuites(minVersion, suites)
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
		// Clients that upgrade a connection to a stream negotiate HTTP/1.1.
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if cert := current(); cert != nil {
				return cert, nil
			}
			return nil, errors.New("get serving certificate: not issued yet")
		},
	}
	// It returns no configuration, so that this one is used. It only waits.
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if c := connlimit.Of(hello.Conn); c != nil {
			return nil, s.connections.Handshake(hello.Context(), c)
		}
		return nil, nil
	}
	if s.auth.ca != nil {
		// auth verifies client certificates, because it accepts a valid token from a client
		// with an invalid certificate.
		config.ClientAuth = tls.RequestClientCert
	}
	return config, nil
}

// warnCipherSuites logs cipher suites that are insecure or have no effect.
func (s *Server) warnCipherSuites(minVersion uint16, suites []uint16) {
	for name, id := range cliflag.InsecureTLSCiphers() {
		if slices.Contains(suites, id) {
			s.deps.Log.Warn("tlsCipherSuites allows an insecure cipher", "suite", name)
		}
	}
	if minVersion == tls.VersionTLS13 && len(suites) > 0 {
		s.deps.Log.Warn("tlsCipherSuites has no effect: TLS 1.3 cipher suites are not configurable")
	}
}

// certificate returns the source of the serving certificate.
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
	pair, err := loadServing(certFile, keyFile, s.deps.Log)
	if err != nil {
		return nil, err
	}
	return pair.Current, nil
}

// loadServing loads a serving certificate. It is reloaded when a file changes.
func loadServing(certFile, keyFile string, log *slog.Logger) (*certificate.Reloaded[tls.Certificate], error) {
	pair, err := certificate.Load(log, func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		return &pair, err
	}, certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("load serving certificate %s with key %s: %w", certFile, keyFile, err)
	}
	return pair, nil
}

// CheckFiles returns an error if the certificates that the configuration names cannot be read. It writes
// nothing. issued: the API server issues the serving certificate.
func CheckFiles(kc *kubelet.KubeletConfiguration, issued bool) error {
	log := slog.New(slog.DiscardHandler)
	var errs []error
	if file := kc.Authentication.X509.ClientCAFile; file != "" {
		if _, err := newClientCA(file, log); err != nil {
			errs = append(errs, config.Invalid("authentication.x509.clientCAFile", "%s", err))
		}
	}
	if *kc.EnableServer && kc.TLSCertFile != "" && !issued {
		if _, err := loadServing(kc.TLSCertFile, kc.TLSPrivateKeyFile, log); err != nil {
			errs = append(errs, config.Invalid("tlsCertFile", "%s", err))
		}
	}
	return errors.Join(errs...)
}

// ensureSelfSigned writes a certificate for host unless the files hold a valid one.
func ensureSelfSigned(host, certFile, keyFile string, now time.Time) error {
	if pair, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil && pair.Leaf.NotAfter.After(now) {
		return nil
	}
	cert, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		return fmt.Errorf("generate self-signed certificate: %w", err)
	}
	if err := keyutil.WriteKey(keyFile, key); err != nil {
		return fmt.Errorf("write self-signed certificate's key: %w", err)
	}
	if err := certutil.WriteCert(certFile, cert); err != nil {
		return fmt.Errorf("write self-signed certificate: %w", err)
	}
	return nil
}

// newClientCA loads the CA bundle for client certificates. It is reloaded when the file changes.
func newClientCA(file string, log *slog.Logger) (*certificate.Reloaded[x509.CertPool], error) {
	ca, err := certificate.Load(log, func() (*x509.CertPool, error) { return certutil.NewPool(file) }, file)
	if err != nil {
		return nil, fmt.Errorf("load client CA: %w", err)
	}
	return ca, nil
}
