package e2e

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
)

const (
	kubeconfigFile = "/etc/kubernetes/own.kubeconfig"
	bootstrapFile  = "/etc/kubernetes/bootstrap.kubeconfig"
	clientPair     = "/var/lib/kubelet/pki/kubelet-client-current.pem"
)

// nodeWith adds a node and starts its kubelet with these files and options.
func nodeWith(t *testing.T, name string, files map[string][]byte, options bed.KubeletOptions) *bed.Box {
	t.Helper()
	node := bareNode(t, name)
	for path, data := range files {
		write(t, node.Path(path), data)
	}
	options.Kind = kubelet
	if err := node.StartKubelet(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	return node
}

func bootstrapKubeconfig(t *testing.T) []byte {
	t.Helper()
	text, err := cluster.ControlPlane.BootstrapKubeconfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestClientCertificate joins a node with a bootstrap token. Then its certificate, which is valid for
// two minutes, is rotated. Running pods and an open log stream are not affected, and the API server
// sees the new certificate.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	node := nodeWith(t, "joining", map[string][]byte{bootstrapFile: bootstrapKubeconfig(t)}, bed.KubeletOptions{
		Flags:  []string{"--kubeconfig=" + kubeconfigFile, "--bootstrap-kubeconfig=" + bootstrapFile},
		Config: "rotateCertificates: true",
	})
	if err := node.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(node.Path(kubeconfigFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"client-certificate: " + clientPair, "client-key: " + clientPair, "name: default-auth"} {
		if !strings.Contains(string(kubeconfig), line) {
			t.Errorf("the kubeconfig lacks %q:\n%s", line, kubeconfig)
		}
	}
	first := clientCertificate(t, node)
	if left := time.Until(first.Leaf.NotAfter); left > bed.SigningDuration {
		t.Fatalf("the certificate is valid for %v", left)
	}

	space := namespace(t)
	stays := startPod(t, space, sleeper("stays", node.Name()))
	startPod(t, space, scripted("counter", node.Name(), "i=0; while :; do echo line $i; i=$((i+1)); sleep 0.2; done"))
	versions := record[corev1.Pod](t, pods(space), "stays")
	lines := followLog(t, space, "counter")

	var second tls.Certificate
	eventually(t, bed.SigningDuration+timeout, func() string {
		if second = clientCertificate(t, node); second.Leaf.Equal(first.Leaf) {
			return "the certificate is not rotated"
		}
		return ""
	})
	if at := time.Now(); at.After(first.Leaf.NotAfter) {
		t.Errorf("rotated at %v, after its expiry at %v", at, first.Leaf.NotAfter)
	}
	eventually(t, timeout, func() string { return seenByAPIServer(t, node, second) })
	startPod(t, space, sleeper("later", node.Name()))

	seen := len(lines())
	eventually(t, timeout, func() string {
		if len(lines()) < seen+5 {
			return "kubectl logs -f receives no more lines"
		}
		return ""
	})
	for i, line := range lines() {
		if want := fmt.Sprint("line ", i); line != want {
			t.Fatalf("line %d of the log is %q", i, line)
		}
	}
	for _, version := range versions() {
		if missing := ready(version); missing != "" {
			t.Error(missing)
			continue
		}
		checkSameContainers(t, stays, version)
	}
}

// clientCertificate returns the node's current client certificate.
func clientCertificate(t *testing.T, node *bed.Box) tls.Certificate {
	t.Helper()
	text, err := node.Exec(t.Context(), "cat", clientPair)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair([]byte(text), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// seenByAPIServer checks that the audit log has a lease renewal with the certificate.
func seenByAPIServer(t *testing.T, node *bed.Box, cert tls.Certificate) string {
	t.Helper()
	file, err := os.Open(cluster.ControlPlane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sum := sha256.Sum256(cert.Leaf.Raw)
	credential := "X509SHA256=" + hex.EncodeToString(sum[:])
	entries := bufio.NewScanner(file)
	entries.Buffer(nil, 1<<20)
	for entries.Scan() {
		if text := entries.Text(); strings.Contains(text, credential) && strings.Contains(text, `"username":"system:node:`+node.Name()+`"`) {
			return ""
		}
	}
	return fmt.Sprintf("the API server has not seen the certificate with serial %x", cert.Leaf.SerialNumber)
}

// followLog runs kubectl logs -f. The returned function returns the lines so far.
func followLog(t *testing.T, space, pod string) func() []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd, stderr := kubectlCommand(ctx, t, "-n", space, "logs", "-f", pod)
	out := &lineBuffer{}
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		select {
		case err := <-ended:
			t.Errorf("kubectl logs -f exited: %v: %s", err, stderr)
		default:
			cancel()
			<-ended
		}
	})
	return out.lines
}

// TestExpiredClientCertificate lets a node's certificate expire. The node recovers without a restart
// if it has a bootstrap kubeconfig or the kubeconfig is replaced.
func TestExpiredClientCertificate(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("the reference exits, to be restarted")
	}
	t.Parallel()
	const life = 40 * time.Second // enough to become ready on a loaded machine
	for name, c := range map[string]struct {
		flags []string
		help  func(t *testing.T, node *bed.Box)
	}{
		"bootstrap kubeconfig": {[]string{"--bootstrap-kubeconfig=" + bootstrapFile}, func(*testing.T, *bed.Box) {}},
		"replaced kubeconfig": {nil, func(t *testing.T, node *bed.Box) {
			write(t, node.Path(kubeconfigFile), nodeKubeconfig(t, node.Name(), time.Hour))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodeName := strings.Fields(name)[0]
			node := nodeWith(t, nodeName, map[string][]byte{
				bootstrapFile:  bootstrapKubeconfig(t),
				kubeconfigFile: nodeKubeconfig(t, nodeName, life),
			}, bed.KubeletOptions{Flags: append(c.flags, "--kubeconfig="+kubeconfigFile)})
			expiry := time.Now().Add(life)
			if err := node.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			space := namespace(t)
			before := startPod(t, space, sleeper("stays", node.Name()))
			time.Sleep(time.Until(expiry) + time.Second)
			c.help(t, node)
			create(t, space, sleeper("later", node.Name()))
			awaitPod(t, space, "later", 2*timeout, ready)
			checkSameContainers(t, before, awaitPod(t, space, "stays", timeout, ready))
		})
	}
}

func nodeKubeconfig(t *testing.T, node string, life time.Duration) []byte {
	t.Helper()
	text, err := cluster.ControlPlane.NodeKubeconfig(node, life)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
