package bed

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	authn "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const metricsServerPort = 4443

// metricsServerService leads the API server to metrics-server, which runs as a process of the
// host. The service is headless, so that it is not in the environment of pods.
const metricsServerService = `
apiVersion: v1
kind: Service
metadata: {name: metrics-server, namespace: kube-system}
spec:
  clusterIP: None
  ports: [{name: https, port: 443, targetPort: %[2]d}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: metrics-server
  namespace: kube-system
  labels: {kubernetes.io/service-name: metrics-server}
addressType: IPv4
endpoints: [{addresses: [%[1]q], conditions: {ready: true}}]
ports: [{name: https, port: %[2]d, protocol: TCP}]
`

// StartMetricsServer starts metrics-server, for kubectl top, and applies its RBAC and APIService
// manifests. It stops with the control plane. When StartMetricsServer returns, metrics-server has
// not scraped nodes yet.
func (b *Bed) StartMetricsServer(ctx context.Context) error {
	dir, err := output(ctx, b.progress, b.bin.Root, filepath.Join(b.bin.Root, "hack", "build-metrics-server.sh"))
	if err != nil {
		return err
	}
	service := filepath.Join(b.slot.dir, "metrics-server.yaml")
	text := fmt.Sprintf(metricsServerService, b.slot.gateway(), metricsServerPort)
	if err := os.WriteFile(service, []byte(text), 0o600); err != nil {
		return fmt.Errorf("start metrics-server: %w", err)
	}
	for _, file := range []string{filepath.Join(dir, "rbac.yaml"), service, filepath.Join(dir, "apiservice.yaml")} {
		if _, err := b.Kubectl(ctx, "apply", "-f", file); err != nil {
			return err
		}
	}
	return b.ControlPlane.startMetricsServer(ctx, filepath.Join(dir, "metrics-server"))
}

func (c *ControlPlane) startMetricsServer(ctx context.Context, program string) error {
	// It uses a token, as in a pod, so that nodes authenticate it by TokenReview.
	token, err := c.Client.CoreV1().ServiceAccounts("kube-system").CreateToken(ctx, "metrics-server", &authn.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("start metrics-server: %w", err)
	}
	text, err := kubeconfigFor(c.Server, c.ca, &clientcmdapi.AuthInfo{Token: token.Status.Token})
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(c.slot.dir, "metrics-server.kubeconfig")
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		return fmt.Errorf("start metrics-server: %w", err)
	}
	serving, err := c.ca.serving("metrics-server", c.slot.gateway())
	if err != nil {
		return err
	}
	cmd := exec.Command(program,
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--bind-address="+c.slot.gateway(),
		fmt.Sprintf("--secure-port=%d", metricsServerPort),
		"--tls-cert-file="+serving.cert,
		"--tls-private-key-file="+serving.key,
		"--kubelet-certificate-authority="+c.ca.caFile(),
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-use-node-status-port",
		"--metric-resolution=10s", // the minimum
		"--kubelet-request-timeout=9s",
	)
	cmd.Dir = c.slot.dir
	d, err := startDaemon("metrics-server", filepath.Join(c.slot.logDir(), "metrics-server.log"), cmd)
	if err != nil {
		return err
	}
	c.daemons = append(c.daemons, d)
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return d.await(ctx, func(ctx context.Context) error {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", c.slot.gateway(), metricsServerPort))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
