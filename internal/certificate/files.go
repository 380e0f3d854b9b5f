package certificate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"

	"k8s.io/client-go/rest"
)

// Files is a client certificate that others renew: what a kubeconfig holds or names, read
// again when it has changed.
type Files struct {
	*Reloaded[tls.Certificate]
	ready chan struct{}
}

// NewFiles reads the kubeconfig. Files are nil where it has no certificate.
func NewFiles(kubeconfig string, log *slog.Logger) (*Files, *rest.Config, error) {
	base, err := readKubeconfig(kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	watched := []string{kubeconfig}
	if base.CertFile != "" {
		watched = append(watched, base.CertFile, base.KeyFile)
	}
	pair, err := Load(log, func() (*tls.Certificate, error) {
		config, err := readKubeconfig(kubeconfig)
		if err != nil {
			return nil, err
		}
		return pairOf(config)
	}, watched...)
	switch {
	case errors.Is(err, errNoCertificate):
		return nil, base, nil
	case err != nil:
		return nil, nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	ready := make(chan struct{})
	close(ready)
	return &Files{pair, ready}, base, nil
}

// Ready is closed: there is a certificate from the beginning.
func (f *Files) Ready() <-chan struct{} { return f.ready }

// Refused needs nothing: Current looks at the files each time.
func (f *Files) Refused() {}
