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

// metricsServerService leads the API server to the program, which runs beside it rather
// than in a pod. It has no address of its own, so that no pod finds it in its environment.
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

// StartMetricsServer starts the program that kubectl top asks, with the rights and the
// registration that its own manifests give it. It ends with the control plane. It has read
// nothing from nodes when this returns.
func (b *Bed) StartMetricsServer(ctx context.Context) error {
	dir, err := output(ctx, b.progress, b.bin.Root, filepath.Join(b.bin.Root, "hack", "build-metrics-server.sh"))
	if err != nil {
		return err
	}
	service := filepath.Join(b.site.dir, "metrics-server.yaml")
	text := fmt.Sprintf(metricsServerService, b.site.gateway(), metricsServerPort)
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
	// A token, as in a pod: nodes then ask the API server who it is.
	token, err := c.Client.CoreV1().ServiceAccounts("kube-system").CreateToken(ctx, "metrics-server", &authn.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("start metrics-server: %w", err)
	}
	text, err := kubeconfigFor(c.Server, c.ca, &clientcmdapi.AuthInfo{Token: token.Status.Token})
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(c.site.dir, "metrics-server.kubeconfig")
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		return fmt.Errorf("start metrics-server: %w", err)
	}
	serving, err := c.ca.serving("metrics-server", c.site.gateway())
	if err != nil {
		return err
	}
	cmd := exec.Command(program,
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--bind-address="+c.site.gateway(),
		fmt.Sprintf("--secure-port=%d", metricsServerPort),
		"--tls-cert-file="+serving.cert,
		"--tls-private-key-file="+serving.key,
		"--kubelet-certificate-authority="+c.ca.caFile(),
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-use-node-status-port",
		"--metric-resolution=10s", // the shortest that it takes
		"--kubelet-request-timeout=9s",
	)
	cmd.Dir = c.site.dir
	d, err := startDaemon("metrics-server", filepath.Join(c.site.logDir(), "metrics-server.log"), cmd)
	if err != nil {
		return err
	}
	c.daemons = append(c.daemons, d)
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return d.await(ctx, func(ctx context.Context) error {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", c.site.gateway(), metricsServerPort))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
