package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

func TestKubectlExec(t *testing.T) { // not parallel: see streams_test.go
	node := steadyNode(t)
	space := namespace(t)
	startPod(t, space, sleeper("target", node.Name()))
	run := func(args ...string) (string, error) {
		return tryKubectl(t, append([]string{"-n", space, "exec", "target"}, args...)...)
	}
	if out, err := run("--", "echo", "hello"); err != nil || out != "hello\n" {
		t.Errorf("echo: %q %v", out, err)
	}
	if out, err := run("--", "sh", "-c", "echo partial; exit 7"); err == nil || !strings.Contains(err.Error(), "exit status 7") || out != "partial\n" {
		t.Errorf("exit code: %q %v", out, err)
	}
	if out, err := run("-c", "none", "--", "true"); err == nil || !strings.Contains(err.Error(), "container none is not valid for pod target") {
		t.Errorf("no such container: %q %v", out, err)
	}
	if out, err := run("--", "/none"); err == nil || !strings.Contains(err.Error(), "no such file or directory") {
		t.Errorf("no such command: %q %v", out, err)
	}
	const size = 50 << 20
	out, err := run("--", "head", "-c", fmt.Sprint(size), "/dev/zero")
	if err != nil || len(out) != size || strings.Trim(out, "\x00") != "" {
		t.Errorf("large output: %d bytes, want %d: %v", len(out), size, err)
	}
}

func TestKubectlExecInput(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	startPod(t, space, sleeper("target", node.Name()))
	for name, env := range protocols {
		t.Run(name, func(t *testing.T) { execInput(t, space, env) })
	}
}

func execInput(t *testing.T, space string, env []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*timeout)
	defer cancel()
	run := func(input string, command ...string) (string, error) {
		cmd, stderr := kubectlCommand(ctx, t, append([]string{"-n", space, "exec", "-i", "target", "--"}, command...)...)
		cmd.Env = append(cmd.Env, env...)
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.Output()
		return string(out) + stderr.String(), err
	}
	text := strings.Repeat("all work and no play\n", 50000)
	// wc exits at the end of its input: the end must be forwarded, and the output must not be cut.
	if out, err := run(text, "wc", "-c"); err != nil || strings.TrimSpace(out) != fmt.Sprint(len(text)) {
		t.Errorf("wc counted %q of %d bytes: %v", out, len(text), err)
	}
	if out, err := run("", "sh", "-c", "test -t 0 && echo yes || echo no"); err != nil || out != "no\n" {
		t.Errorf("terminal without -t: %q %v", out, err)
	}
	var exit *exec.ExitError
	if out, err := run("", "sh", "-c", "exit 42"); !errors.As(err, &exit) || exit.ExitCode() != 42 {
		t.Errorf("exit code: %q %v, want 42", out, err)
	}
}

// TestKubectlExecTerminal runs kubectl in a terminal made by script(1). The terminal size arrives after the
// command has started.
func TestKubectlExecTerminal(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("script")
	if err != nil {
		t.Skip("script(1) is not installed")
	}
	node := steadyNode(t)
	space := namespace(t)
	startPod(t, space, sleeper("target", node.Name()))
	ctx, cancel := context.WithTimeout(t.Context(), 2*timeout)
	defer cancel()
	inner, _ := kubectlCommand(ctx, t, "-n", space, "exec", "-it", "target", "--", "sh", "-c", `test -t 0 && until s=$(stty size 2>/dev/null); [ "$s" ]; do sleep 0.05; done; echo "size $s"; read x; echo "got $x"; exit 3`)
	cmd := exec.CommandContext(ctx, program, "-qec", "stty rows 33 cols 77; "+strings.Join(quote(inner.Args), " "), "/dev/null")
	cmd.Env = inner.Env
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("word\n")); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), "size 33 77") || !strings.Contains(string(out), "got word") {
		t.Errorf("in a terminal: %q, %v", out, err)
	}
}

func quote(args []string) []string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	return quoted
}

// TestManyExecs runs a hundred execs in parallel.
func TestManyExecs(t *testing.T) { // not parallel: see streams_test.go
	node := steadyNode(t)
	space := namespace(t)
	startPod(t, space, sleeper("target", node.Name()))
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			out, err := execInPod(t.Context(), space, "target", "echo", fmt.Sprint("number ", i))
			if want := fmt.Sprintf("number %d\n", i); err != nil || out != want {
				t.Errorf("%q %v, want %q", out, err, want)
			}
		})
	}
	all.Wait()
}

// execInPod runs a command over a WebSocket, as kubectl does.
func execInPod(ctx context.Context, namespace, pod string, command ...string) (string, error) {
	request := client().CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	process, err := remotecommand.NewWebSocketExecutor(cluster.ControlPlane.Config, http.MethodGet, request.URL().String())
	if err != nil {
		return "", err
	}
	var out, stderr bytes.Buffer
	err = process.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &stderr})
	return out.String() + stderr.String(), err
}
