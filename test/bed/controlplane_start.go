package bed

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
)

// startEtcd does not wait until etcd is ready: the API server does.
func (c *ControlPlane) startEtcd(context.Context) (err error) {
	c.etcd, err = c.run("etcd",
		"--name=bed",
		"--data-dir="+c.etcdDir(),
		"--unsafe-no-fsync", // the data is not needed after the test
		"--log-level=warn",
		"--quota-backend-bytes=8589934592", // the default is too small for 30,000 pods
		"--listen-client-urls="+c.etcdURL(2379),
		"--advertise-client-urls="+c.etcdURL(2379),
		"--listen-peer-urls="+c.etcdURL(2380),
		"--initial-advertise-peer-urls="+c.etcdURL(2380),
		"--initial-cluster=bed="+c.etcdURL(2380),
	)
	return err
}

func (c *ControlPlane) etcdURL(port int) string {
	return fmt.Sprintf("http://%s:%d", c.slot.loopback(), port)
}

func (c *ControlPlane) startAPIServer(ctx context.Context) (err error) {
	if c.serverFlags, err = c.apiServerFlags(); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	return c.StartAPIServer(ctx)
}

// StartAPIServer starts the API server and returns when it is ready. After StopAPIServer it
// finds its data again in etcd.
func (c *ControlPlane) StartAPIServer(ctx context.Context) (err error) {
	if c.server, err = c.run("kube-apiserver", c.serverFlags...); err != nil {
		return err
	}
	return c.awaitAPIServer(ctx)
}

func (c *ControlPlane) awaitAPIServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return c.server.await(ctx, func(ctx context.Context) error {
		return c.Client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// StopAPIServer kills the API server.
func (c *ControlPlane) StopAPIServer() error { return c.server.kill() }

func (c *ControlPlane) apiServerFlags() ([]string, error) {
	serving, err := c.ca.serving("apiserver", c.slot.gateway(), serviceAddress, "127.0.0.1", "localhost",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc."+clusterDomain)
	if err != nil {
		return nil, err
	}
	kubelets, err := c.ca.client("apiserver-kubelet-client", "kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return nil, err
	}
	tokens, err := c.ca.serviceAccountKey()
	if err != nil {
		return nil, err
	}
	policy, err := c.writeAuditPolicy()
	if err != nil {
		return nil, err
	}
	aggregation, err := c.aggregationFlags()
	if err != nil {
		return nil, err
	}
	return append(slices.Concat(aggregation, c.gateFlags(), c.extraFlags),
		// Fields of gates may refer to APIs that are off by default. They have no effect on pods that
		// do not.
		"--runtime-config=scheduling.k8s.io/v1beta1=true",
		"--etcd-servers="+c.etcdURL(2379),
		"--bind-address="+c.slot.gateway(),
		"--advertise-address="+c.slot.gateway(),
		"--secure-port=6443",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range="+serviceCIDR,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth=true",
		"--audit-policy-file="+policy,
		"--audit-log-path="+c.AuditLog(),
		"--allow-privileged=true",
		"--profiling=false",
		"--client-ca-file="+c.ca.caFile(),
		"--tls-cert-file="+serving.cert,
		"--tls-private-key-file="+serving.key,
		"--kubelet-certificate-authority="+c.ca.caFile(),
		"--kubelet-client-certificate="+kubelets.cert,
		"--kubelet-client-key="+kubelets.key,
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer="+issuer,
		"--service-account-key-file="+tokens,
		"--service-account-signing-key-file="+tokens,
	), nil
}

// startControllers starts the controller manager and the scheduler and waits for both.
func (c *ControlPlane) startControllers(ctx context.Context) error {
	scheduler, err := c.controller("kube-scheduler", 10259)
	if err != nil {
		return err
	}
	c.controllers = append(c.controllers, scheduler)
	manager, err := c.controller("kube-controller-manager", 10257,
		"--service-account-private-key-file="+filepath.Join(c.ca.dir, "service-accounts.key"),
		"--root-ca-file="+c.ca.caFile(),
		"--use-service-account-credentials=true",
		"--cluster-signing-cert-file="+c.ca.caFile(),
		"--cluster-signing-key-file="+filepath.Join(c.ca.dir, "ca.key"),
		"--cluster-signing-duration="+SigningDuration.String(),
	)
	if err != nil {
		return err
	}
	c.controllers = append(c.controllers, manager)
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := scheduler.await(ctx, c.healthy(10259)); err != nil {
		return err
	}
	return manager.await(ctx, c.healthy(10257))
}

// gateFlags returns the flag for the feature gates, if there are any.
func (c *ControlPlane) gateFlags() []string {
	if len(c.gates) == 0 {
		return nil
	}
	return []string{"--feature-gates=" + strings.Join(c.gates, "=true,") + "=true"}
}

func (c *ControlPlane) controller(name string, port int, args ...string) (*daemon, error) {
	user, err := c.ca.client(name, "system:"+name)
	if err != nil {
		return nil, err
	}
	serving, err := c.ca.serving(name+"-serving", c.slot.loopback())
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(c.slot.dir, name+".kubeconfig")
	if err := writeKubeconfig(kubeconfig, c.Server, c.ca, user); err != nil {
		return nil, err
	}
	return c.run(name, append([]string{
		"--kubeconfig=" + kubeconfig,
		"--bind-address=" + c.slot.loopback(),
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + serving.cert,
		"--tls-private-key-file=" + serving.key,
		"--leader-elect=false",
		"--profiling=false",
	}, append(args, c.gateFlags()...)...)...)
}

// healthy returns a check of a controller's /healthz, which needs no credentials.
func (c *ControlPlane) healthy(port int) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet,
			fmt.Sprintf("https://%s:%d/healthz", c.slot.loopback(), port), nil)
		if err != nil {
			return err
		}
		client, err := c.ca.httpClient()
		if err != nil {
			return err
		}
		defer client.CloseIdleConnections()
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("health of port %d: %s", port, answer.Status)
		}
		return nil
	}
}
