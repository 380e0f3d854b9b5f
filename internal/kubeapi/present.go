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

// Certificate is a client certificate that changes in the life of the process.
type Certificate interface {
	Current() *tls.Certificate // nil while there is none
	Ready() <-chan struct{}    // closed once there is one
	Refused()                  // says that the API server did not take it; must not block
}

// certificateLimit is how long a request waits for the first certificate. It is approved by
// a controller in a second, or by a person in hours; the latter is not worth waiting for.
const certificateLimit = 10 * time.Second

var errNoCertificate = errors.New("the node has no client certificate yet: its certificate signing request waits for approval")

// presenter shows the certificate of the moment to the API server.
type presenter struct {
	source Certificate
	cut    func()
	shown  atomic.Pointer[tls.Certificate]
	next   http.RoundTripper
}

// present makes the transport that shows the certificate in place of the one in base.
func present(base *rest.Config, source Certificate, dialer *connrotation.Dialer) error {
	base.CertFile, base.KeyFile, base.CertData, base.KeyData = "", "", nil, nil
	config, err := rest.TLSConfigFor(base)
	if err != nil {
		return fmt.Errorf("set up TLS to %s: %w", base.Host, err)
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	p := &presenter{source: source, cut: dialer.CloseAll}
	config.GetClientCertificate = p.show
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
	// The transport has them, and must not be told twice.
	base.TLSClientConfig, base.Dial, base.Proxy = rest.TLSClientConfig{}, nil, nil
	base.Wrap(func(next http.RoundTripper) http.RoundTripper {
		p.next = next
		return p
	})
	return nil
}

func (p *presenter) show(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	cert := p.source.Current()
	p.shown.Store(cert)
	if cert == nil {
		return &tls.Certificate{}, nil
	}
	return cert, nil
}

// RoundTrip holds requests back until there is a certificate: without one they would all be
// refused, and each caller would wait out its own pause. A refusal may mean that the
// certificate of this connection has been replaced; then the next request shows the new one.
func (p *presenter) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := p.await(request); err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	response, err := p.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		p.source.Refused()
		if p.source.Current() != p.shown.Load() {
			p.cut()
		}
	}
	return response, err
}

func (p *presenter) await(request *http.Request) error {
	select {
	case <-p.source.Ready():
		return nil
	default:
	}
	ctx, cancel := context.WithTimeout(request.Context(), certificateLimit)
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

// WrappedRoundTripper lets others reach the transport, to close idle connections.
func (p *presenter) WrappedRoundTripper() http.RoundTripper { return p.next }
