package kubeadm

import (
	"os"
	"strings"
	"testing"
)

// testReset removes a node with kubeadm reset, which leaves no container and no file of the kubelet,
// and joins it again.
func (c *cluster) testReset(t *testing.T) {
	m := c.own
	if _, err := c.kubectl(t.Context(), "drain", m.Name(), "--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=2m"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.kubeadm(t.Context(), "reset", "--force", "--cri-socket=unix:///run/containerd/containerd.sock"); err != nil {
		t.Fatal(err)
	}
	if left, err := m.Exec(t.Context(), "ctr", "-n", "k8s.io", "containers", "list", "-q"); err != nil || strings.TrimSpace(left) != "" {
		t.Errorf("containers after the reset: %q, %v", left, err)
	}
	if files, err := os.ReadDir(m.Path("/var/lib/kubelet")); err != nil || len(files) > 0 {
		t.Errorf("files of the kubelet after the reset: %v, %v", files, err)
	}
	if _, err := c.kubectl(t.Context(), "delete", "node", m.Name()); err != nil {
		t.Fatal(err)
	}
	c.join(t, m)
	eventually(t, timeout, func() string { return c.nodeReady(t, m.Name()) })
	c.witness(t, m, "rejoined")
}
