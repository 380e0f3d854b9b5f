package kubeadm

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"swiftlet/test/bed"
)

// Programs has the paths of what is installed on the nodes.
type Programs struct {
	Addons    string // directory of kubeadm, kube-proxy and coredns
	Reference string // directory of etcd, the control plane, kubectl and the reference kubelet
	Work      string // directory with bin/swiftlet, as in a checkout, and systemctl
	Root      string // the checkout
}

// FindPrograms builds what is not in the cache, and writes its progress to w. Programs of the
// checkout are built to work.
func FindPrograms(ctx context.Context, w io.Writer, work string) (*Programs, error) {
	binaries, err := bed.FindBinaries(ctx, w)
	if err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, filepath.Join(binaries.Root, "hack", "build-kubeadm.sh"))
	build.Stderr = w
	dir, err := build.Output()
	if err != nil {
		return nil, fmt.Errorf("build kubeadm: %w", err)
	}
	p := &Programs{Addons: strings.TrimSpace(string(dir)), Reference: binaries.Reference, Work: work, Root: binaries.Root}
	if err := binaries.BuildSwiftlet(ctx, w, p.Swiftlet()); err != nil {
		return nil, err
	}
	systemctl := exec.CommandContext(ctx, "go", "build", "-o", p.systemctl(), "./test/kubeadm/systemctl")
	systemctl.Dir, systemctl.Stderr, systemctl.Env = p.Root, w, append(os.Environ(), "CGO_ENABLED=0")
	if err := systemctl.Run(); err != nil {
		return nil, fmt.Errorf("build systemctl: %w", err)
	}
	return p, nil
}

func (p *Programs) Swiftlet() string  { return filepath.Join(p.Work, "bin", "swiftlet") }
func (p *Programs) systemctl() string { return filepath.Join(p.Work, "systemctl") }

// kubelet returns the program of a kind.
func (p *Programs) kubelet(kind bed.KubeletKind) string {
	if kind == bed.Reference {
		return filepath.Join(p.Reference, "kubelet")
	}
	return p.Swiftlet()
}
