package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/images"
)

func TestKubectlCopy(t *testing.T) { // not parallel: see streams_test.go
	node := steadyNode(t)
	space := namespace(t)
	startPod(t, space, sleeper("target", node.Name()))
	dir := t.TempDir()
	data := make([]byte, 50<<20)
	for i := range data {
		data[i] = byte(i>>16) ^ byte(i*7)
	}
	there, back := filepath.Join(dir, "there"), filepath.Join(dir, "back")
	if err := os.WriteFile(there, data, 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "-n", space, "cp", there, "target:/copy")
	kubectl(t, "-n", space, "cp", "target:/copy", back)
	got, err := os.ReadFile(back)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("the copy has %d bytes, want %d, or differs: %v", len(got), len(data), err)
	}
}

func TestKubectlAttach(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	pod := scripted("echoing", node.Name(), `while read line; do echo "heard $line"; done; echo silence; `+exitOnTerm)
	pod.Spec.Containers[0].Stdin, pod.Spec.Containers[0].StdinOnce = true, true
	startPod(t, space, pod)
	ctx, cancel := context.WithTimeout(t.Context(), 2*timeout)
	defer cancel()
	cmd, stderr := kubectlCommand(ctx, t, "-n", space, "attach", "-i", "echoing")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("one\n")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 100)
	n, err := out.Read(answer)
	if err != nil || string(answer[:n]) != "heard one\n" {
		t.Errorf("answer %q %v: %s", answer[:n], err, stderr)
	}
	in.Close()
	if n, err = out.Read(answer); err != nil || string(answer[:n]) != "silence\n" {
		t.Errorf("after the end of input %q %v: %s", answer[:n], err, stderr)
	}
	cancel()
	_ = cmd.Wait() // it was killed
}

func TestKubectlDebug(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	startPod(t, space, sleeper("target", node.Name()))
	kubectl(t, "-n", space, "debug", "target", "--image="+images.Busybox, "--image-pull-policy=IfNotPresent",
		"-c", "debugger", "--profile=general", "--", "sh", "-c", "echo looking >&2; "+exitOnTerm)
	awaitPod(t, space, "target", timeout, func(p *corev1.Pod) string {
		for _, s := range p.Status.EphemeralContainerStatuses {
			if s.State.Running != nil {
				return ""
			}
		}
		return "the ephemeral container is not running"
	})
	if out := kubectl(t, "-n", space, "exec", "target", "-c", "debugger", "--", "echo", "inside"); out != "inside\n" {
		t.Errorf("exec in the ephemeral container: %q", out)
	}
	if out := kubectl(t, "-n", space, "logs", "target", "-c", "debugger"); out != "looking\n" {
		t.Errorf("log of the ephemeral container: %q", out)
	}
}
