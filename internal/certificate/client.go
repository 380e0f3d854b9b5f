package certificate

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	certificates "k8s.io/api/certificates/v1"
	"k8s.io/client-go/rest"

	"swiftlet/internal/kubeclient"
)

// ClientConfig configures the certificate with which the node authenticates to the API server.
type ClientConfig struct {
	NodeName string
	// Kubeconfig is used while its certificate is valid. NewClient overwrites it with one that
	// names the store's certificate when it has to use Bootstrap.
	Kubeconfig string
	// Bootstrap is a kubeconfig that may only create a node's CertificateSigningRequest. It may
	// be empty, and the file may be removed once the node has joined.
	Bootstrap string
	Dir       string // holds the certificate store
	// Renew requests the next certificate before the current one expires.
	Renew     bool
	UserAgent string
}

// clientPrefix begins the names of the store's files. The reference kubelet uses the same.
const clientPrefix = "kubelet-client"

// NewClient returns a Rotator of the node's client certificate, and the connection settings of
// the API server without credentials. While no certificate is valid, the Rotator requests one
// with the credentials of the kubeconfig files. NewClient sets deps.Store.
func NewClient(cfg ClientConfig, deps Deps) (*Rotator, *rest.Config, error) {
	now := deps.Clock.Now()
	config, err := cfg.connection(now, deps.Log)
	if err != nil {
		return nil, nil, err
	}
	store, err := newFileStore(fileStore{dir: cfg.Dir, prefix: clientPrefix, certFile: config.CertFile, keyFile: config.KeyFile, clock: deps.Clock, log: deps.Log})
	if err != nil {
		return nil, nil, fmt.Errorf("open certificates in %s: %w", cfg.Dir, err)
	}
	deps.Store = store
	r, err := New(Config{
		Name:   "client",
		Signer: certificates.KubeAPIServerClientKubeletSignerName,
		Usages: clientUsages,
		Renew:  cfg.Renew,
	}, deps)
	if err != nil {
		return nil, nil, err
	}
	r.bootstrapClient = func() (kubeclient.Interface, func(), error) { return cfg.bootstrapClient(deps.Clock.Now()) }
	if err := r.useKubeconfigPair(config, now); err != nil {
		return nil, nil, fmt.Errorf("kubeconfig %s: %w", cfg.Kubeconfig, err)
	}
	r.SetTemplate(nodeTemplate(cfg.NodeName))
	return r, rest.AnonymousClientConfig(config), nil
}

// useKubeconfigPair uses the kubeconfig's own certificate where the store has no valid one, and
// always where the Rotator does not renew: the store is then not used.
func (r *Rotator) useKubeconfigPair(config *rest.Config, now time.Time) error {
	if r.cfg.Renew && (r.validCurrent() != nil || len(config.CertData) == 0) {
		return nil
	}
	pair, err := loadPair(config)
	switch {
	case !r.cfg.Renew:
		if err == nil && checkExpiry(pair, now) == nil {
			r.setCurrent(pair, pair.Leaf.NotAfter)
		}
		return nil
	case err != nil:
		return err
	}
	// A kubeconfig with an embedded certificate was made by an administrator's tool: its key has
	// been on another machine. Store it, where other programs expect it, and renew it at once.
	if pair, err = r.deps.Store.Update(config.CertData, config.KeyData); err != nil {
		return fmt.Errorf("store its certificate: %w", err)
	}
	r.setCurrent(pair, now)
	return nil
}

// Check returns the connection settings of the API server as NewClient does, and the errors that it would
// return for the kubeconfig files. It changes nothing.
func (cfg ClientConfig) Check(now time.Time, log *slog.Logger) (*rest.Config, error) {
	config, bootstraps, err := cfg.choose(now, log)
	if err != nil {
		return nil, err
	}
	if bootstraps {
		_, err = cfg.joinedKubeconfig()
	} else if _, absent := os.Stat(cfg.storedPair()); absent != nil && cfg.Renew && len(config.CertData) > 0 {
		_, err = loadPair(config)
		err = wrap("kubeconfig "+cfg.Kubeconfig, err)
	}
	return rest.AnonymousClientConfig(config), err
}

// connection returns the connection settings of the API server. It writes the kubeconfig where
// the bootstrap kubeconfig must be used.
func (cfg ClientConfig) connection(now time.Time, log *slog.Logger) (*rest.Config, error) {
	config, bootstraps, err := cfg.choose(now, log)
	if err == nil && bootstraps {
		err = cfg.writeKubeconfig()
	}
	return config, err
}

// choose returns the connection settings of the API server, and whether they are those of the
// bootstrap kubeconfig.
func (cfg ClientConfig) choose(now time.Time, log *slog.Logger) (_ *rest.Config, bootstraps bool, _ error) {
	kubeconfig, unusable := readKubeconfig(cfg.Kubeconfig)
	if cfg.Bootstrap == "" {
		return kubeconfig, false, unusable
	}
	if unusable == nil {
		if unusable = checkPair(kubeconfig, now); unusable == nil {
			return kubeconfig, false, nil
		}
	}
	bootstrap, err := readKubeconfig(cfg.Bootstrap)
	if errors.Is(err, fs.ErrNotExist) && kubeconfig != nil {
		// Tools remove the bootstrap kubeconfig when the node has joined. An administrator may
		// still replace the kubeconfig.
		log.Warn("client certificate: kubeconfig is unusable and the bootstrap kubeconfig does not exist",
			"kubeconfig", cfg.Kubeconfig, "reason", unusable, "err", err)
		return kubeconfig, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("request client certificate (%w): bootstrap kubeconfig cannot be used: %w", unusable, err)
	}
	log.Info("client certificate: kubeconfig is unusable, requesting a certificate with the bootstrap kubeconfig",
		"kubeconfig", cfg.Kubeconfig, "bootstrapKubeconfig", cfg.Bootstrap, "reason", unusable)
	bootstrap = rest.AnonymousClientConfig(bootstrap)
	bootstrap.CertFile, bootstrap.KeyFile = cfg.storedPair(), cfg.storedPair()
	return bootstrap, true, nil
}

// bootstrapClient returns a client for use while the node has no valid certificate, and a
// function that closes its connections. It reads the kubeconfig files on every call, because an
// administrator may have replaced them.
func (cfg ClientConfig) bootstrapClient(now time.Time) (kubeclient.Interface, func(), error) {
	config, err := cfg.bootstrapConfig(now)
	if err != nil {
		return nil, nil, err
	}
	config.UserAgent = cfg.UserAgent
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("make transport to %s: %w", config.Host, err)
	}
	client, err := kubeclient.New(config, httpClient)
	if err != nil {
		return nil, nil, err
	}
	return client, httpClient.CloseIdleConnections, nil
}

// bootstrapConfig returns the kubeconfig where it is usable, else the bootstrap kubeconfig.
func (cfg ClientConfig) bootstrapConfig(now time.Time) (*rest.Config, error) {
	kubeconfig, unusable := readKubeconfig(cfg.Kubeconfig)
	if unusable == nil {
		unusable = checkPair(kubeconfig, now)
	}
	if unusable == nil || cfg.Bootstrap == "" && kubeconfig != nil {
		return kubeconfig, nil
	}
	if cfg.Bootstrap == "" {
		return nil, unusable
	}
	bootstrap, err := readKubeconfig(cfg.Bootstrap)
	if err != nil {
		return nil, fmt.Errorf("%w; and %w", unusable, err)
	}
	// The kubeconfig must name the certificate that is about to be issued.
	return bootstrap, cfg.writeKubeconfig()
}
