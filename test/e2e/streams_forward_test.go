package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// forwarding runs kubectl port-forward until the test ends and returns its local address.
func forwarding(t *testing.T, env []string, space, pod string, port int) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd, said := kubectlCommand(ctx, t, "-n", space, "port-forward", pod, fmt.Sprintf(":%d", port))
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was cut off
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("port-forward: %s", said)
	}
	// Forwarding from 127.0.0.1:40001 -> 8000
	words := strings.Fields(lines.Text())
	if len(words) < 3 {
		t.Fatalf("port-forward says %q", lines.Text())
	}
	go func() {
		for lines.Scan() { // it tells of every connection
		}
	}()
	return words[2]
}

// talk sends text, says that this was all, and returns the answer.
func talk(address, text string) (string, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// TestKubectlPortForward has clients that say that they are done before the server has
// answered: the end of one direction must not cut off the other. (That it reaches the
// server is for the runtime to do, and containerd does not.)
func TestKubectlPortForward(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	pod := scripted("server", node.Name(), `nc -ll -p 8000 -e sh -c 'read line; sleep 0.2; echo "heard ${#line}"; echo bye'`)
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8000)}},
		PeriodSeconds: 1,
	}
	startPod(t, space, pod)
	for name, env := range protocols {
		t.Run(name, func(t *testing.T) { talkMuch(t, forwarding(t, env, space, "server", 8000)) })
	}
}

// talkMuch has twenty conversations at once.
func talkMuch(t *testing.T, address string) {
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			size := 10_000 + i
			answer, err := talk(address, strings.Repeat("x", size)+"\n")
			if want := fmt.Sprintf("heard %d\nbye\n", size); err != nil || answer != want {
				t.Errorf("answer %q %v, want %q", answer, err, want)
			}
		})
	}
	all.Wait()
}
