package kubeadm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"swiftlet/test/bed"
)

// Machine is a node of the bed on which kubeadm, a kubelet and systemctl are installed.
type Machine struct {
	*bed.Box
	programs *Programs
}

// addMachine adds a node to the bed and installs the programs and images. As on a machine with
// Debian's packages of Kubernetes, the kubelet's service is started, and fails until kubeadm has
// written its configuration.
func addMachine(ctx context.Context, b *bed.Bed, programs *Programs, name string, kind bed.KubeletKind, archives []string) (*Machine, error) {
	box, err := b.AddNode(ctx, name)
	if err != nil {
		return nil, err
	}
	m := &Machine{Box: box, programs: programs}
	if err := m.install(ctx, kind); err != nil {
		return nil, fmt.Errorf("install programs on %s: %w", name, err)
	}
	for _, archive := range archives {
		if err := box.ImportImage(ctx, archive); err != nil {
			return nil, err
		}
	}
	_, err = box.Exec(ctx, "systemctl", "start", "kubelet")
	return m, err
}

// install writes below /usr, which the node otherwise shares with the host.
func (m *Machine) install(ctx context.Context, kind bed.KubeletKind) error {
	upper, work := m.Path("/usr/upper"), m.Path("/usr/work")
	for _, dir := range []string{upper, work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	commands := [][]string{
		{"mount", "-t", "overlay", "-o", "lowerdir=/usr,upperdir=" + upper + ",workdir=" + work, "overlay", "/usr"},
		{"install", "-m", "755", m.programs.kubelet(kind), "/usr/bin/kubelet"},
		{"install", "-m", "755", filepath.Join(m.programs.Addons, "kubeadm"), "/usr/bin/kubeadm"},
		{"install", "-m", "755", filepath.Join(m.programs.Reference, "kubectl"), "/usr/bin/kubectl"},
		{"install", "-m", "755", m.programs.systemctl(), "/usr/bin/systemctl"},
		{"cp", "-r", filepath.Join(m.programs.Root, "test/kubeadm/units/usr"), "/"},
		{"ln", "-s", m.Log("kubelet"), "/var/log/kubelet.log"},
		// CoreDNS forwards to the node's name server and exits if that is itself.
		{"sh", "-c", "echo nameserver 192.0.2.1 > /etc/resolv.conf"},
	}
	for _, command := range commands {
		if _, err := m.Exec(ctx, command...); err != nil {
			return err
		}
	}
	return nil
}

// kubeadm runs the command on the machine and returns its output. It is written to a log, too.
func (m *Machine) kubeadm(ctx context.Context, args ...string) (string, error) {
	log, err := os.OpenFile(m.Log("kubeadm"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return "", fmt.Errorf("run kubeadm: %w", err)
	}
	defer log.Close()
	fmt.Fprintf(log, "# kubeadm %v\n", args)
	var out bytes.Buffer
	cmd := m.Command(ctx, append([]string{"kubeadm"}, args...)...)
	cmd.Stdout = io.MultiWriter(&out, log)
	cmd.Stderr = cmd.Stdout
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubeadm %v on %s: %w\n%s", args, m.Name(), err, &out)
	}
	return out.String(), nil
}
