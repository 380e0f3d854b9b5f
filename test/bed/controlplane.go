package bed

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	serviceCIDR   = "10.96.0.0/16"
	clusterDNS    = "10.96.0.10"
	clusterDomain = "cluster.local"
	// startLimit bounds the start of one program. A loaded machine needs a tenth of it.
	startLimit = 60 * time.Second
)

// ControlPlane is a running etcd, API server, controller manager and scheduler.
type ControlPlane struct {
	Kubeconfig string // of an administrator
	Server     string // the API server's address, as nodes reach it
	Config     *rest.Config
	Client     kubernetes.Interface

	slot    *slot
	bin     string
	gates   []string // feature gates that are on
	ca      *authority
	daemons []*daemon // in the order of their start

	etcd        *daemon
	server      *daemon // the API server
	serverFlags []string
	extraFlags  []string // of the API server
	controllers []*daemon
}

// startControlPlane returns when the API server answers and both controllers run.
func startControlPlane(ctx context.Context, s *slot, bin string, gates []string) (*ControlPlane, error) {
	c, err := newControlPlane(s, bin)
	if err != nil {
		return nil, err
	}
	c.gates = gates
	return c, c.start(ctx, c.startEtcd, c.startAPIServer, c.startControllers)
}

// startAPI returns when the API server answers. There are no controllers.
func startAPI(ctx context.Context, s *slot, bin string, flags []string) (*ControlPlane, error) {
	c, err := newControlPlane(s, bin)
	if err != nil {
		return nil, err
	}
	c.extraFlags = flags
	return c, c.start(ctx, c.startEtcd, c.startAPIServer)
}

func newControlPlane(s *slot, bin string) (*ControlPlane, error) {
	ca, err := newAuthority(filepath.Join(s.dir, "pki"))
	if err != nil {
		return nil, err
	}
	return &ControlPlane{
		Kubeconfig: filepath.Join(s.dir, "admin.kubeconfig"),
		Server:     fmt.Sprintf("https://%s:6443", s.gateway()),
		slot:       s,
		bin:        bin,
		ca:         ca,
	}, nil
}

// start runs steps in order. If one fails, it stops what runs.
func (c *ControlPlane) start(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return errors.Join(err, c.Stop())
		}
	}
	return nil
}

// Stop stops all programs in the reverse order of their start, and waits.
func (c *ControlPlane) Stop() error {
	var errs []error
	for i := len(c.daemons) - 1; i >= 0; i-- {
		errs = append(errs, c.daemons[i].stop(3*time.Second))
	}
	c.daemons = nil
	return errors.Join(errs...)
}

// connect writes the administrator's kubeconfig and creates the clients.
func (c *ControlPlane) connect() error {
	admin, err := c.ca.client("admin", "admin", "system:masters")
	if err != nil {
		return err
	}
	if err := writeKubeconfig(c.Kubeconfig, c.Server, c.ca, admin); err != nil {
		return err
	}
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	c.Config.QPS = -1 // no client-side rate limit: tests measure the node
	if c.Client, err = kubernetes.NewForConfig(c.Config); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	return nil
}

// run starts a program of the control plane.
func (c *ControlPlane) run(name string, args ...string) (*daemon, error) {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.slot.dir
	d, err := startDaemon(name, filepath.Join(c.slot.logDir(), name+".log"), cmd)
	if err != nil {
		return nil, err
	}
	c.daemons = append(c.daemons, d)
	return d, nil
}

// issuer is the issuer of service account tokens.
const issuer = "https://kubernetes.default.svc." + clusterDomain
