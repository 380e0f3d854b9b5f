package conformance

import (
	"context"
	"os/exec"
	"path/filepath"

	"swiftlet/test/bed"
)

// target is the API that the tests use, and how they are run so that they reach it.
type target struct {
	kubeconfig, kubectl string
	flags               []string // further flags of the suite
	command             func(ctx context.Context, argv ...string) *exec.Cmd
}

// clusterTarget is the bed's control plane. The tests run on the host.
func clusterTarget(b *bed.Bed) target {
	return target{
		kubeconfig: b.ControlPlane.Kubeconfig, kubectl: filepath.Join(b.ToolDir(), "kubectl"),
		command: func(ctx context.Context, argv ...string) *exec.Cmd {
			return exec.CommandContext(ctx, argv[0], argv[1:]...)
		},
	}
}

// loneTarget is a lone node, whose API listens on loopback: the tests run in its box.
func loneTarget(n *bed.LoneNode) target {
	return target{
		kubeconfig: n.Kubeconfig(), kubectl: n.KubectlProgram(), command: n.Command,
		flags: []string{"--kubelet-root-dir=" + n.KubeletDir()},
	}
}
