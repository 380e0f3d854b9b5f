package certificate

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	certificates "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/certificate"
	"k8s.io/klog/v2"
)

// ClientConfig says how the node makes itself known to the API server.
type ClientConfig struct {
	NodeName string
	// Kubeconfig is used while its certificate is valid, and written to name the store's
	// when Bootstrap had to be used.
	Kubeconfig string
	// Bootstrap is a kubeconfig that may request a node's certificate; may be empty, and
	// the file may be gone once the node has its own.
	Bootstrap string
	Dir       string // of the store
	// Renew asks for the next certificate before this one expires.
	Renew     bool
	UserAgent string
}

// clientPair begins the names of the store's files, as the reference has them.
const clientPair = "kubelet-client"

// NewClient keeps the certificate that the node shows to the API server, and returns how that
// is reached. While no certificate is valid, the kubeconfig files say how to request one.
// deps.Store is not used.
func NewClient(cfg ClientConfig, deps Deps) (*Rotator, *rest.Config, error) {
	now := deps.Clock.Now()
	base, err := cfg.prepare(now, deps.Log)
	if err != nil {
		return nil, nil, err
	}
	store, err := certificate.NewFileStoreWithLogger(klog.Background().V(4), clientPair, cfg.Dir, cfg.Dir, base.CertFile, base.KeyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("open certificates in %s: %w", cfg.Dir, err)
	}
	deps.Store = store
	r, err := New(Config{
		Name:   "client",
		Signer: certificates.KubeAPIServerClientKubeletSignerName,
		Usages: certificate.DefaultKubeletClientGetUsages,
		Renew:  cfg.Renew,
	}, deps)
	if err != nil {
		return nil, nil, err
	}
	r.dial = func() (kubernetes.Interface, func(), error) { return cfg.dial(deps.Clock.Now()) }
	if err := r.begin(base, now); err != nil {
		return nil, nil, fmt.Errorf("kubeconfig %s: %w", cfg.Kubeconfig, err)
	}
	r.Want(nodeRequest(cfg.NodeName))
	return r, rest.AnonymousClientConfig(base), nil
}

// begin uses the kubeconfig's own certificate where the store has none that is valid, or
// where it is not to be renewed and so is nobody's but the kubeconfig's.
func (r *Rotator) begin(base *rest.Config, now time.Time) error {
	if r.cfg.Renew && (r.valid() != nil || len(base.CertData) == 0) {
		return nil
	}
	pair, err := pairOf(base)
	switch {
	case !r.cfg.Renew:
		if err == nil && unexpired(pair, now) == nil {
			r.use(pair, pair.Leaf.NotAfter)
		}
		return nil
	case err != nil:
		return err
	}
	// Such a kubeconfig was made by an administrator's tool: its key has been on another
	// machine. It goes to the store, where others look for it, and is replaced at once.
	if pair, err = r.deps.Store.Update(base.CertData, base.KeyData); err != nil {
		return fmt.Errorf("keep its certificate: %w", err)
	}
	r.use(pair, now)
	return nil
}

// prepare finds out how the API server is reached.
func (cfg ClientConfig) prepare(now time.Time, log *slog.Logger) (*rest.Config, error) {
	own, unusable := readKubeconfig(cfg.Kubeconfig)
	if cfg.Bootstrap == "" {
		return own, unusable
	}
	if unusable == nil {
		if unusable = usable(own, now); unusable == nil {
			return own, nil
		}
	}
	boot, err := readKubeconfig(cfg.Bootstrap)
	if errors.Is(err, fs.ErrNotExist) && own != nil {
		// Tools remove it when the node has joined. What is wrong may yet be put right.
		log.Warn("the kubeconfig is of no use, and there is no bootstrap kubeconfig",
			"kubeconfig", cfg.Kubeconfig, "why", unusable, "err", err)
		return own, nil
	}
	if err != nil {
		return nil, fmt.Errorf("request client certificate (%w): bootstrap kubeconfig cannot be used: %w", unusable, err)
	}
	log.Info("a client certificate is requested with the bootstrap kubeconfig", "bootstrap", cfg.Bootstrap, "why", unusable)
	boot = rest.AnonymousClientConfig(boot)
	boot.CertFile, boot.KeyFile = cfg.pairFile(), cfg.pairFile()
	return boot, cfg.writeKubeconfig()
}

// dial reaches the API server while the node has no valid certificate in use. The files
// are read each time: somebody may have put right what is wrong with them.
func (cfg ClientConfig) dial(now time.Time) (kubernetes.Interface, func(), error) {
	config, err := cfg.credential(now)
	if err != nil {
		return nil, nil, err
	}
	config.UserAgent = cfg.UserAgent
	over, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("make transport to %s: %w", config.Host, err)
	}
	client, err := kubernetes.NewForConfigAndClient(config, over)
	if err != nil {
		return nil, nil, fmt.Errorf("make client for %s: %w", config.Host, err)
	}
	return client, over.CloseIdleConnections, nil
}

func (cfg ClientConfig) credential(now time.Time) (*rest.Config, error) {
	own, unusable := readKubeconfig(cfg.Kubeconfig)
	if unusable == nil {
		unusable = usable(own, now)
	}
	if unusable == nil || cfg.Bootstrap == "" && own != nil {
		return own, nil
	}
	if cfg.Bootstrap == "" {
		return nil, unusable
	}
	boot, err := readKubeconfig(cfg.Bootstrap)
	if err != nil {
		return nil, fmt.Errorf("%w; and %w", unusable, err)
	}
	// From now on the kubeconfig is about the certificate that this one gets us.
	return boot, cfg.writeKubeconfig()
}
