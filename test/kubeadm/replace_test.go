package kubeadm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swiftlet/test/bed"
)

// testReplace replaces the reference kubelet by ours with the commands of README.md, and back. Pods
// keep running.
func (c *cluster) testReplace(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("replaces the reference kubelet by ours")
	}
	m := c.beside
	before := c.running(t, m.Name())
	script := "set -ex; PATH=$PWD/bin:$PATH\n" + readmeCommands(t, c.programs.Root)
	if out, err := m.Command(t.Context(), "sh", "-c", "cd "+c.programs.Work+"\n"+script).CombinedOutput(); err != nil {
		t.Fatalf("replace the kubelet: %v\n%s", err, out)
	}
	c.checkKubelet(t, m, "/usr/local/bin/kubelet")
	c.witness(t, m, "ours")
	c.checkUndisturbed(t, before, true)
	if _, err := c.kubectl(t.Context(), "delete", "pod", "completes-"+m.Name()); err != nil {
		t.Error(err)
	}

	const back = "rm /etc/systemd/system/kubelet.service.d/90-swiftlet.conf; systemctl daemon-reload && systemctl restart kubelet"
	if _, err := m.Exec(t.Context(), "sh", "-c", back); err != nil {
		t.Fatal(err)
	}
	c.checkKubelet(t, m, "/usr/bin/kubelet")
	c.witness(t, m, "reference")
	c.checkUndisturbed(t, before, false)
}

// readmeCommands returns the shell commands of README.md's section "In place of the kubelet".
func readmeCommands(t *testing.T, root string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n### In place of the kubelet\n")
	_, block, start := strings.Cut(section, "\n```sh\n")
	commands, _, end := strings.Cut(block, "\n```\n")
	if !found || !start || !end || !strings.Contains(commands, "systemctl start kubelet") {
		t.Fatalf("README.md has no commands that replace the kubelet: %q", commands)
	}
	return commands
}

// checkKubelet checks which program the kubelet's service runs.
func (c *cluster) checkKubelet(t *testing.T, m *Machine, want string) {
	t.Helper()
	program, err := m.Exec(t.Context(), "sh", "-c", "readlink /proc/$(pidof kubelet)/exe")
	if err != nil || strings.TrimSpace(program) != want {
		t.Errorf("kubelet of %s is %q, %v; want %s", m.Name(), program, err, want)
	}
}

// witness starts a pod and waits until it is ready: then the kubelet has synced the older ones.
func (c *cluster) witness(t *testing.T, m *Machine, name string) {
	t.Helper()
	name = "witness-" + name
	overrides := `{"spec": {"nodeName": "` + m.Name() + `"}}`
	if _, err := c.kubectl(t.Context(), "run", name, "--image=docker.io/library/busybox:1.36", "--overrides", overrides, "--", "sleep", "3600"); err != nil {
		t.Fatal(err)
	}
	eventually(t, timeout, func() string { return c.podReady(t, "default", name) })
}
