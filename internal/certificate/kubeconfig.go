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

// pairOf is the client certificate that a kubeconfig holds or names.
func pairOf(config *rest.Config) (pair *tls.Certificate, err error) {
	var made tls.Certificate
	switch {
	case len(config.CertData) > 0:
		made, err = tls.X509KeyPair(config.CertData, config.KeyData)
		err = wrap("read the certificate inside", err)
	case config.CertFile != "":
		made, err = tls.LoadX509KeyPair(config.CertFile, config.KeyFile)
		err = wrap(fmt.Sprintf("read certificate %s with key %s", config.CertFile, config.KeyFile), err)
	default:
		err = errNoCertificate
	}
	return &made, err
}

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// usable says why the API server would not take the kubeconfig's certificate.
func usable(config *rest.Config, now time.Time) error {
	pair, err := pairOf(config)
	if err != nil {
		return err
	}
	return unexpired(pair, now)
}

// unexpired looks at the authorities between the certificate and its root, too.
func unexpired(pair *tls.Certificate, now time.Time) error {
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

// writeKubeconfig makes the file that names the store's certificate, which comes later,
// and the cluster of the bootstrap kubeconfig with all that is said of it there.
func (cfg ClientConfig) writeKubeconfig() error {
	boot, err := (&clientcmd.ClientConfigLoadingRules{ExplicitPath: cfg.Bootstrap}).Load()
	if err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", cfg.Bootstrap, err)
	}
	now := boot.Contexts[boot.CurrentContext]
	if now == nil || boot.Clusters[now.Cluster] == nil {
		return fmt.Errorf("read kubeconfig %s: the current context %q names no cluster", cfg.Bootstrap, boot.CurrentContext)
	}
	file := clientcmdapi.NewConfig()
	file.Clusters["default-cluster"] = boot.Clusters[now.Cluster]
	file.AuthInfos["default-auth"] = &clientcmdapi.AuthInfo{ClientCertificate: cfg.pairFile(), ClientKey: cfg.pairFile()}
	file.Contexts["default-context"] = &clientcmdapi.Context{Cluster: "default-cluster", AuthInfo: "default-auth", Namespace: "default"}
	file.CurrentContext = "default-context"
	text, err := clientcmd.Write(*file)
	if err != nil {
		return fmt.Errorf("encode kubeconfig: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(cfg.Kubeconfig), 0o755); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	// It appears whole: others wait for this file. Without it, once the bootstrap kubeconfig is
	// gone, the node has no way back into the cluster.
	if err := checkpoint.Replace(cfg.Kubeconfig, text, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// pairFile is where the store has the certificate in use.
func (cfg ClientConfig) pairFile() string { return filepath.Join(cfg.Dir, clientPair+"-current.pem") }
