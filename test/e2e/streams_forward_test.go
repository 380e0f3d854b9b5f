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
	cmd, stderr := kubectlCommand(ctx, t, "-n", space, "port-forward", pod, fmt.Sprintf(":%d", port))
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
		_ = cmd.Wait() // it was killed
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("port-forward: %s", stderr)
	}
	// Forwarding from 127.0.0.1:40001 -> 8000
	words := strings.Fields(lines.Text())
	if len(words) < 3 {
		t.Fatalf("port-forward printed %q", lines.Text())
	}
	go func() {
		for lines.Scan() { // it prints every connection
		}
	}()
	return words[2]
}

// talk sends a line and returns the whole response. With done it closes its write side first.
func talk(address, line string, done bool) (string, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := fmt.Fprintln(conn, line); err != nil {
		return "", err
	}
	if done {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			return "", err
		}
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

func TestKubectlPortForward(t *testing.T) { // not parallel: see streams_test.go
	node := steadyNode(t)
	space := namespace(t)
	pod := scripted("server", node.Name(), `nc -ll -p 8000 -e sh -c 'read line; echo "heard ${#line}"; echo bye'`)
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8000)}},
		PeriodSeconds: 1,
	}
	startPod(t, space, pod)
	for name, env := range protocols {
		t.Run(name, func(t *testing.T) {
			address := forwarding(t, env, space, "server", 8000)
			talkAtOnce(t, address, 20)
			talkHalf(t, address)
		})
	}
}

// talkAtOnce makes several connections in parallel.
func talkAtOnce(t *testing.T, address string, conversations int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range conversations {
		all.Go(func() {
			size := 10_000 + i
			answer, err := talk(address, strings.Repeat("x", size), false)
			if want := fmt.Sprintf("heard %d\nbye\n", size); err != nil || answer != want {
				t.Errorf("answer %q %v, want %q", answer, err, want)
			}
		})
	}
	all.Wait()
}

// talkHalf closes its write side before the server has responded: that must not close the other direction.
// containerd then waits only one second for the response, which a server on a loaded machine may miss.
func talkHalf(t *testing.T, address string) {
	t.Helper()
	var answer string
	var err error
	for range 3 {
		if answer, err = talk(address, "hello", true); err == nil && answer == "heard 5\nbye\n" {
			return
		}
	}
	t.Errorf("response after the client closed its write side: %q %v", answer, err)
}
