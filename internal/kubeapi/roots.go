package kubeapi

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
)

// roots are the authorities of the API server, read from a file. It is read again when it has changed, so
// that the authority can be replaced without a restart.
type roots struct {
	file string
	host string // the API server's name or address

	mu       sync.Mutex
	pool     *x509.CertPool
	modified time.Time
	size     int64
}

// reloadRoots makes config verify the API server with the authorities that the file of base has at the
// time. It does nothing if base names no file.
func reloadRoots(config *tls.Config, base *rest.Config) error {
	if base.CAFile == "" || len(base.CAData) > 0 || base.Insecure {
		return nil
	}
	host := base.ServerName
	if host == "" {
		server, _, err := rest.DefaultServerUrlFor(base)
		if err != nil {
			return fmt.Errorf("set up TLS to %s: %w", base.Host, err)
		}
		host = server.Hostname()
	}
	r := &roots{file: base.CAFile, host: host}
	if _, err := r.current(); err != nil {
		return fmt.Errorf("set up TLS to %s: %w", base.Host, err)
	}
	config.InsecureSkipVerify = true // VerifyConnection does it
	config.VerifyConnection = r.verify
	return nil
}

// verify verifies the certificate of the API server. It is called for every connection, resumed ones too.
func (r *roots) verify(state tls.ConnectionState) error {
	pool, err := r.current()
	if err != nil {
		return fmt.Errorf("verify certificate of API server: %w", err)
	}
	options := x509.VerifyOptions{Roots: pool, DNSName: r.host, Intermediates: x509.NewCertPool()}
	for _, cert := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(cert)
	}
	if _, err := state.PeerCertificates[0].Verify(options); err != nil {
		return fmt.Errorf("verify certificate of API server: %w", err)
	}
	return nil
}

// current returns the authorities. If the file cannot be read, those that were read before stay.
func (r *roots) current() (*x509.CertPool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, err := os.Stat(r.file)
	if err == nil && (r.pool == nil || info.Size() != r.size || !info.ModTime().Equal(r.modified)) {
		var pool *x509.CertPool
		if pool, err = certutil.NewPool(r.file); err == nil {
			r.pool, r.size, r.modified = pool, info.Size(), info.ModTime()
		}
	}
	if r.pool == nil {
		return nil, fmt.Errorf("read authorities: %w", err)
	}
	return r.pool, nil
}
