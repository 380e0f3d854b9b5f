package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Tests of streams that keep the machine busy do not run beside others, because some of
// those look at the time that the node takes.

// tryKubectl runs the real one against the cluster; a failure is the caller's to judge.
func tryKubectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*usual)
	defer cancel()
	cmd, said := kubectlCommand(ctx, t, args...)
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %v: %w: %s", args, err, said)
	}
	return string(out), nil
}

// older makes kubectl speak SPDY instead of WebSockets.
var older = []string{"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false", "KUBECTL_PORT_FORWARD_WEBSOCKETS=false"}

// protocols are those that kubectl may speak, as additions to its environment.
var protocols = map[string][]string{"WebSocket": nil, "SPDY": older}

// kubectlCommand is one that was not started; what it says on standard error is kept.
func kubectlCommand(ctx context.Context, t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.CommandContext(ctx, filepath.Join(cluster.ToolDir(), "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.ControlPlane.Kubeconfig, "HOME="+t.TempDir())
	said := &bytes.Buffer{}
	cmd.Stderr = said
	return cmd, said
}

// scripted is a pod whose only container runs a script.
func scripted(name, node, script string) *corev1.Pod {
	pod := sleeper(name, node)
	pod.Spec.Containers[0].Command = []string{"sh", "-c", script}
	pod.Spec.TerminationGracePeriodSeconds = new(int64)
	return pod
}

// startPod makes a pod and waits until it runs.
func startPod(t *testing.T, space string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	create(t, space, pod)
	return awaitPod(t, space, pod.Name, usual, ready)
}
