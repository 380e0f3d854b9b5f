package certificate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"

	"k8s.io/client-go/rest"
)

// ClientFiles is a client certificate that another program renews: the one that a kubeconfig
// embeds or names. Its files are reloaded when they change.
type ClientFiles struct {
	*Reloaded[tls.Certificate]
	ready chan struct{}
}

// NewClientFiles reads the kubeconfig, and returns the connection settings of the API server
// along with the certificate. The certificate is nil where the kubeconfig has none.
func NewClientFiles(kubeconfig string, log *slog.Logger) (*ClientFiles, *rest.Config, error) {
	config, err := readKubeconfig(kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	files := []string{kubeconfig}
	if config.CertFile != "" {
		files = append(files, config.CertFile, config.KeyFile)
	}
	pair, err := Load(log, func() (*tls.Certificate, error) {
		config, err := readKubeconfig(kubeconfig)
		if err != nil {
			return nil, err
		}
		return loadPair(config)
	}, files...)
	switch {
	case errors.Is(err, errNoCertificate):
		return nil, config, nil
	case err != nil:
		return nil, nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	ready := make(chan struct{})
	close(ready)
	return &ClientFiles{pair, ready}, config, nil
}

// Ready is always closed: NewClientFiles loaded a certificate.
func (f *ClientFiles) Ready() <-chan struct{} { return f.ready }

// Recheck does nothing: Current checks the files on every call.
func (f *ClientFiles) Recheck() {}
