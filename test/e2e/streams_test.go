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

// Tests of streams that keep the machine busy do not run in parallel with other tests, because some of
// those measure time.

// tryKubectl runs kubectl and returns its error.
func tryKubectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*timeout)
	defer cancel()
	cmd, stderr := kubectlCommand(ctx, t, args...)
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %v: %w: %s", args, err, stderr)
	}
	return string(out), nil
}

// older makes kubectl use SPDY instead of WebSockets.
var older = []string{"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false", "KUBECTL_PORT_FORWARD_WEBSOCKETS=false"}

// protocols are the streaming protocols of kubectl, as environment variables.
var protocols = map[string][]string{"WebSocket": nil, "SPDY": older}

// kubectlCommand returns a command that is not started, and the buffer of its standard error.
func kubectlCommand(ctx context.Context, t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.CommandContext(ctx, filepath.Join(cluster.ToolDir(), "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.ControlPlane.Kubeconfig, "HOME="+t.TempDir())
	stderr := &bytes.Buffer{}
	cmd.Stderr = stderr
	return cmd, stderr
}

// scripted returns a pod whose container runs a script.
func scripted(name, node, script string) *corev1.Pod {
	pod := sleeper(name, node)
	pod.Spec.Containers[0].Command = []string{"sh", "-c", script}
	pod.Spec.TerminationGracePeriodSeconds = new(int64)
	return pod
}

// startPod creates a pod and waits until it is ready.
func startPod(t *testing.T, space string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	create(t, space, pod)
	return awaitPod(t, space, pod.Name, timeout, ready)
}
