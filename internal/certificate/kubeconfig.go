package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"swiftlet/internal/checkpoint"
)

func readKubeconfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
	}
	return config, nil
}

var errNoCertificate = errors.New("no client certificate")

// loadPair returns the client certificate and key that a kubeconfig embeds or names.
func loadPair(config *rest.Config) (*tls.Certificate, error) {
	var pair tls.Certificate
	var err error
	switch {
	case len(config.CertData) > 0:
		pair, err = tls.X509KeyPair(config.CertData, config.KeyData)
		err = wrap("read the certificate inside", err)
	case config.CertFile != "":
		pair, err = tls.LoadX509KeyPair(config.CertFile, config.KeyFile)
		err = wrap(fmt.Sprintf("read certificate %s with key %s", config.CertFile, config.KeyFile), err)
	default:
		err = errNoCertificate
	}
	return &pair, err
}

func wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", operation, err)
}

// checkPair returns an error where the kubeconfig has no certificate, or an expired one.
func checkPair(config *rest.Config, now time.Time) error {
	pair, err := loadPair(config)
	if err != nil {
		return err
	}
	return checkExpiry(pair, now)
}

// checkExpiry returns an error where the certificate or an intermediate CA has expired.
func checkExpiry(pair *tls.Certificate, now time.Time) error {
	for _, der := range pair.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("parse certificate: %w", err)
		}
		if now.After(cert.NotAfter) {
			return fmt.Errorf("certificate of %q expired at %s", cert.Subject.CommonName, cert.NotAfter.Format(time.RFC3339))
		}
	}
	return nil
}

// joinedKubeconfig returns a kubeconfig that names the store's certificate, which need not exist yet, and
// copies the cluster of the bootstrap kubeconfig with all its settings.
func (cfg ClientConfig) joinedKubeconfig() ([]byte, error) {
	bootstrap, err := (&clientcmd.ClientConfigLoadingRules{ExplicitPath: cfg.Bootstrap}).Load()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", cfg.Bootstrap, err)
	}
	current := bootstrap.Contexts[bootstrap.CurrentContext]
	if current == nil || bootstrap.Clusters[current.Cluster] == nil {
		return nil, fmt.Errorf("read kubeconfig %s: the current context %q names no cluster", cfg.Bootstrap, bootstrap.CurrentContext)
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["default-cluster"] = bootstrap.Clusters[current.Cluster]
	kubeconfig.AuthInfos["default-auth"] = &clientcmdapi.AuthInfo{ClientCertificate: cfg.storedPair(), ClientKey: cfg.storedPair()}
	kubeconfig.Contexts["default-context"] = &clientcmdapi.Context{Cluster: "default-cluster", AuthInfo: "default-auth", Namespace: "default"}
	kubeconfig.CurrentContext = "default-context"
	text, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig: %w", err)
	}
	return text, nil
}

// writeKubeconfig writes joinedKubeconfig.
func (cfg ClientConfig) writeKubeconfig() error {
	text, err := cfg.joinedKubeconfig()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(cfg.Kubeconfig), 0o755); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	// Replace the file atomically: other programs wait for it. Once the bootstrap kubeconfig is
	// removed, the node cannot rejoin the cluster without it.
	if err := checkpoint.Replace(cfg.Kubeconfig, text, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// storedPair is the file of the store that holds the current certificate and key.
func (cfg ClientConfig) storedPair() string {
	return filepath.Join(cfg.Dir, clientPrefix+"-current.pem")
}
