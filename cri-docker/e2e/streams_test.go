package e2e

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/network"
)

// dial opens a stream in the box, as the API server does through the kubelet.
func dial(t *testing.T, address, protocol string) *websocket.Conn {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Scheme = "ws"
	port, err := strconv.ParseInt(u.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	dialer := websocket.Dialer{Subprotocols: []string{protocol}, NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return network.DialInside(ctx, box.NetNS(), int32(port))
	}}
	conn, _, err := dialer.DialContext(t.Context(), u.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the server has closed it
	return conn
}

// received collects messages by channel until the server closes the connection.
func received(t *testing.T, conn *websocket.Conn) map[byte]string {
	t.Helper()
	all := map[byte]string{}
	for {
		_, message, err := conn.ReadMessage()
		var closed *websocket.CloseError
		if errors.As(err, &closed) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(message) > 0 {
			all[message[0]] += string(message[1:])
		}
	}
}

func send(t *testing.T, conn *websocket.Conn, channel byte, text string) {
	t.Helper()
	if err := conn.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, text...)); err != nil {
		t.Fatal(err)
	}
}

func TestExec(t *testing.T) {
	p := runPod(t, shared)
	id := p.run("c", "sleep 1000")
	answer, err := shared.Exec(t.Context(), &runtimeapi.ExecRequest{ContainerId: id, Stdin: true, Stdout: true, Stderr: true,
		Cmd: []string{"sh", "-c", "read line; echo got $line; echo problem >&2; exit 9"}})
	if err != nil {
		t.Fatal(err)
	}
	conn := dial(t, answer.GetUrl(), "v4.channel.k8s.io")
	send(t, conn, 0, "hello\n")
	got := received(t, conn)
	if got[1] != "got hello\n" || got[2] != "problem\n" || !strings.Contains(got[3], `"message":"9"`) {
		t.Errorf("streams %q; want output, error output and exit code 9", got)
	}
}

func TestExecTerminal(t *testing.T) {
	p := runPod(t, shared)
	id := p.run("c", "sleep 1000")
	answer, err := shared.Exec(t.Context(), &runtimeapi.ExecRequest{ContainerId: id, Stdin: true, Stdout: true, Tty: true,
		Cmd: []string{"sh", "-c", "trap 'stty size; exit' WINCH; echo ready; while true; do sleep 0.05; done"}})
	if err != nil {
		t.Fatal(err)
	}
	conn := dial(t, answer.GetUrl(), "v4.channel.k8s.io")
	text := ""
	for !strings.Contains(text, "ready") {
		_, message, err := conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if len(message) > 0 && message[0] == 1 {
			text += string(message[1:])
		}
	}
	send(t, conn, 4, `{"Width":101,"Height":37}`)
	if got := received(t, conn); !strings.Contains(got[1], "37 101") {
		t.Errorf("streams %q; want the size of the terminal", got)
	}
}

func TestAttach(t *testing.T) {
	p := runPod(t, shared)
	id := p.run("c", "read line; echo got $line; exit 0", func(c *runtimeapi.ContainerConfig) { c.Stdin, c.StdinOnce = true, true })
	answer, err := shared.Attach(t.Context(), &runtimeapi.AttachRequest{ContainerId: id, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		t.Fatal(err)
	}
	conn := dial(t, answer.GetUrl(), "v4.channel.k8s.io")
	send(t, conn, 0, "hello\n")
	if got := received(t, conn); got[1] != "got hello\n" {
		t.Errorf("streams %q", got)
	}
	p.exited(id)
	if got := p.output("c"); got != "stdout F got hello\n" {
		t.Errorf("log %q", got)
	}
}

func TestPortForward(t *testing.T) {
	p := runPod(t, shared)
	p.run("c", "echo from the pod > /tmp/index.html; httpd -f -p 9000 -h /tmp")
	var got map[byte]string
	eventually(t, "the web server", func() bool {
		answer, err := shared.PortForward(t.Context(), &runtimeapi.PortForwardRequest{PodSandboxId: p.id, Port: []int32{9000}})
		if err != nil {
			t.Fatal(err)
		}
		conn := dial(t, answer.GetUrl(), "v4.channel.k8s.io")
		send(t, conn, 0, "GET / HTTP/1.0\r\n\r\n")
		got = map[byte]string{}
		for !strings.Contains(got[0], "from the pod\n") && len(got[1]) <= 2 { // an error has the port, too
			_, message, err := conn.ReadMessage()
			if err != nil {
				return false
			}
			got[message[0]] += string(message[1:])
		}
		return len(got[1]) <= 2
	})
	if port := binary.LittleEndian.Uint16([]byte(got[0])); port != 9000 {
		t.Errorf("streams %q begin with port %d; want 9000", got, port)
	}
}
