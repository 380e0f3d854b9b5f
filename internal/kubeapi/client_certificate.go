package kubeapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// Certificate is a client certificate that is rotated while the process runs.
type Certificate interface {
	Current() *tls.Certificate // nil while there is none
	Ready() <-chan struct{}    // closed once there is one
	Recheck()                  // called after the API server rejected the certificate; must not block
}

// certificateTimeout is how long a request waits for the first certificate. A controller
// approves it within a second; a manual approval may take hours and is not waited for.
const certificateTimeout = 10 * time.Second

var errNoCertificate = errors.New("wait for client certificate: the certificate signing request is not approved yet")

// certificateTransport authenticates with the current certificate.
type certificateTransport struct {
	source           Certificate
	closeConnections func()
	sent             atomic.Pointer[tls.Certificate]
	next             http.RoundTripper
}

// CheckTLS returns the error of NewClients for the TLS settings of the API server. It has no effects, while
// NewClients may add a transport to those that client-go shares.
func CheckTLS(server *rest.Config) error {
	_, err := tlsConfig(rest.AnonymousClientConfig(server))
	return err
}

func tlsConfig(server *rest.Config) (*tls.Config, error) {
	config, err := rest.TLSConfigFor(server)
	if err != nil {
		return nil, fmt.Errorf("set up TLS to %s: %w", server.Host, err)
	}
	return config, nil
}

// useCertificate makes base authenticate with the certificate instead of its own.
func useCertificate(base *rest.Config, source Certificate, dialer *connrotation.Dialer) error {
	base.CertFile, base.KeyFile, base.CertData, base.KeyData = "", "", nil, nil
	config, err := tlsConfig(base)
	if err != nil {
		return err
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if err := reloadRoots(config, base); err != nil {
		return err
	}
	p := &certificateTransport{source: source, closeConnections: dialer.CloseAll}
	config.GetClientCertificate = p.clientCertificate
	proxy := base.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	base.Transport = utilnet.SetTransportDefaults(&http.Transport{
		Proxy:               proxy,
		DialContext:         dialer.DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 25,
		DisableCompression:  base.DisableCompression,
	})
	// The transport has these settings; client-go rejects setting them twice.
	base.TLSClientConfig, base.Dial, base.Proxy = rest.TLSClientConfig{}, nil, nil
	base.Wrap(func(next http.RoundTripper) http.RoundTripper {
		p.next = next
		return p
	})
	return nil
}

func (p *certificateTransport) clientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	cert := p.source.Current()
	p.sent.Store(cert)
	if cert == nil {
		return &tls.Certificate{}, nil
	}
	return cert, nil
}

// RoundTrip delays requests until there is a certificate: without one, each would fail and its
// caller back off. A 401 may mean that the connection still uses a replaced certificate;
// then RoundTrip closes it, so that the next request uses the new one.
func (p *certificateTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := p.await(request); err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	response, err := p.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		p.source.Recheck()
		if p.source.Current() != p.sent.Load() {
			p.closeConnections()
		}
	}
	return response, err
}

func (p *certificateTransport) await(request *http.Request) error {
	select {
	case <-p.source.Ready():
		return nil
	default:
	}
	ctx, cancel := context.WithTimeout(request.Context(), certificateTimeout)
	defer cancel()
	select {
	case <-p.source.Ready():
		return nil
	case <-ctx.Done():
	}
	if err := request.Context().Err(); err != nil {
		return fmt.Errorf("%w (%w)", errNoCertificate, err)
	}
	return errNoCertificate
}

// WrappedRoundTripper lets apimachinery close idle connections of the wrapped transport.
func (p *certificateTransport) WrappedRoundTripper() http.RoundTripper { return p.next }
