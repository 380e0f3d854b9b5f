package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestKubeadmService reads the units of kubeadm's packages with the files that kubeadm and its user
// write, and with the drop-in of README.md.
func TestKubeadmService(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS("../units")); err != nil {
		t.Fatal(err)
	}
	config := []string{
		"--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf", "--kubeconfig=/etc/kubernetes/kubelet.conf",
		"--config=/var/lib/kubelet/config.yaml",
	}
	checkArguments(t, root, append([]string{"/usr/bin/kubelet"}, config...))

	write(t, root, "var/lib/kubelet/kubeadm-flags.env", "KUBELET_KUBEADM_ARGS=\"--node-ip=10.0.0.1 --v=2\"\n")
	write(t, root, "etc/default/kubelet", "# a comment\nKUBELET_EXTRA_ARGS=--v=4\n")
	config = append(config, "--node-ip=10.0.0.1", "--v=2", "--v=4")
	checkArguments(t, root, append([]string{"/usr/bin/kubelet"}, config...))

	write(t, root, "etc/systemd/system/kubelet.service.d/90-swiftlet.conf", "[Service]\nExecStart=\n"+
		"ExecStart=/usr/local/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS\n")
	checkArguments(t, root, append([]string{"/usr/local/bin/kubelet"}, config...))

	write(t, root, "etc/systemd/system/kubelet.service.d/95-type.conf", "[Service]\nType=notify\n")
	if _, err := loadService(root, "kubelet"); err == nil {
		t.Error("an option without effect is not rejected")
	}
}

func checkArguments(t *testing.T, root string, want []string) {
	t.Helper()
	s, err := loadService(root, "kubelet")
	if err != nil {
		t.Fatal(err)
	}
	environment, err := s.environment(root)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s.arguments(environment)); diff != "" {
		t.Errorf("command line (-want +got):\n%s", diff)
	}
	if s.restartDelay != 10*time.Second {
		t.Errorf("restart delay is %v", s.restartDelay)
	}
}

func write(t *testing.T, root, path, text string) {
	t.Helper()
	path = filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
