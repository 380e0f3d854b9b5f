package server

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// expect sends each request with the admin certificate and compares status code and body.
func (n *node) expect(want map[string]string) {
	n.t.Helper()
	admin := n.credentials()["admin cert"]
	for request, response := range want {
		method, path, _ := strings.Cut(request, " ")
		code, body, _ := n.get(method, path, admin)
		if got := fmt.Sprint(code, " ", body); got != response {
			n.t.Errorf("%s: %s, want %s", request, got, response)
		}
	}
}

func TestContainerLogs(t *testing.T) {
	n := start(t, true, nil)
	n.expect(map[string]string{
		"GET /containerLogs/ns/web/main":                                               "200 /logs/main-1 ",
		"GET /containerLogs/ns/web/main?previous=true":                                 "200 /logs/main-0 ",
		"GET /containerLogs/ns/web/main?previous=false":                                "200 /logs/main-1 ",
		"GET /containerLogs/ns/web/init":                                               "200 /logs/init-0 ",
		"GET /containerLogs/ns/web/debug?follow=1":                                     "200 /logs/debug-0  follow",
		"GET /containerLogs/ns/web/main?tail=5":                                        "200 /logs/main-1  tail",
		"GET /containerLogs/ns/web/main?tail=all&tailLines=3":                          "200 /logs/main-1 ",
		"GET /containerLogs/ns/web/main?stream=All":                                    "200 /logs/main-1 ",
		"GET /containerLogs/ns/web/main?insecureSkipTLSVerifyBackend=true&what=?":      "200 /logs/main-1 ",
		"GET /containerLogs/ns/other/main":                                             `404 pod "other" does not exist`,
		"GET /containerLogs/other/web/main":                                            `404 pod "web" does not exist`,
		"GET /containerLogs/ns/web/none":                                               `404 container "none" not found in pod "web"`,
		"GET /containerLogs/ns/web/plain?previous=1":                                   `400 previous terminated container "plain" in pod "web" not found`,
		"GET /containerLogs/ns/web/pulling":                                            `400 container "pulling" in pod "web" is waiting to start: image can't be pulled`,
		"GET /containerLogs/ns/web/failing":                                            `400 container "failing" in pod "web" is waiting to start: trying and failing to pull image`,
		"GET /containerLogs/ns/web/new":                                                `400 container "new" in pod "web" is waiting to start: ContainerCreating`,
		"GET /containerLogs/ns/web/lost":                                               `400 container "lost" in pod "web" is terminated`,
		"GET /containerLogs/ns/web/unknown":                                            `400 container "unknown" in pod "web" is waiting to start - no logs yet`,
		"GET /containerLogs/ns/web/gone":                                               `400 unable to retrieve container logs for fake://gone-0`,
		"GET /containerLogs/ns/web/plain":                                              `400 read log: no such file`,
		"GET /containerLogs/ns/web/main?tailLines=x":                                   `400 {"message": "Unable to decode query."}`,
		"GET /containerLogs/ns/web/main?sinceTime=x":                                   `400 {"message": "Unable to decode query."}`,
		"GET /containerLogs/ns/web/main?tailLines=-1":                                  `422 {"message": "Invalid request."}`,
		"GET /containerLogs/ns/web/main?limitBytes=0":                                  `422 {"message": "Invalid request."}`,
		"GET /containerLogs/ns/web/main?sinceSeconds=0":                                `422 {"message": "Invalid request."}`,
		"GET /containerLogs/ns/web/main?stream=stdin":                                  `422 {"message": "Invalid request."}`,
		"GET /containerLogs/ns/web/main?sinceSeconds=1&sinceTime=2026-11-15T00:00:00Z": `422 {"message": "Invalid request."}`,
		"GET /containerLogs/ns/web/main?stream=Stdout": `400 unable to return the given log stream: "Stdout". ` +
			`Please enable PodLogsQuerySplitStreams feature gate in kubelet`,
		"POST /containerLogs/ns/web/main": "405 405: Method Not Allowed",
	})
	split := start(t, true, func(c *Config, _ *Deps) { c.SplitLogStreams = true })
	split.expect(map[string]string{
		"GET /containerLogs/ns/web/main?stream=Stdout":             "200 /logs/main-1 stdout",
		"GET /containerLogs/ns/web/main?stream=Stderr":             "200 /logs/main-1 stderr",
		"GET /containerLogs/ns/web/main?stream=Stderr&tailLines=1": `422 {"message": "Invalid request."}`,
	})
}

func TestStreamErrors(t *testing.T) {
	n := start(t, true, nil)
	const noStream = "400 you must specify at least 1 of stdin, stdout, stderr"
	n.expect(map[string]string{
		"POST /exec/ns/web/main":                     noStream,
		"POST /exec/ns/web/main?tty=1&error=1":       noStream,
		"POST /exec/ns/other/main?output=1":          "404 pod does not exist",
		"POST /exec/ns/web/init?output=1":            `500 container not found ("init")`,
		"POST /exec/ns/web/main?output=1&command=ls": "500 Upgrade request required\n",
		"GET /exec/ns/web/uid-1/main?output=1":       "500 Upgrade request required\n",
		"PUT /exec/ns/web/main?output=1":             "405 405: Method Not Allowed",
		"POST /attach/ns/web/main":                   noStream,
		"POST /attach/ns/web/none?output=1":          "500 container none not found in pod web_ns",
		"POST /attach/ns/web/uid-2/main?output=1":    "500 pod web_ns not found",
		"POST /portForward/ns/other":                 "404 pod does not exist",
		"POST /portForward/ns/web/uid-2":             "404 pod not found",
		"POST /portForward/ns/web":                   "500 Upgrade request required\n",
		"POST /run/ns/other/main":                    "404 pod does not exist",
		"POST /run/ns/web/none":                      `500 container not found ("none")`,
		"POST /run/ns/web/main?cmd=ls+-l":            "200 main-1 out err",
		"POST /run/ns/web/uid-1/main?cmd=false+x":    "500 command 'false x' exited with 1: no",
		"GET /run/ns/web/main":                       "405 405: Method Not Allowed",
	})
	for code, want := range map[codes.Code]string{
		codes.NotFound:          "404 rpc error: code = NotFound desc = no",
		codes.ResourceExhausted: "429 rpc error: code = ResourceExhausted desc = no",
		codes.Unknown:           "500 rpc error: code = Unknown desc = no",
	} {
		n := start(t, true, func(_ *Config, d *Deps) { d.Runtime = &fakeRuntime{err: status.Error(code, "no")} })
		n.expect(map[string]string{"POST /exec/ns/web/main?output=1": want, "POST /portForward/ns/web": want})
	}
}

// newEchoServer is a runtime's streaming server that echoes its input.
func newEchoServer(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
		_, _ = io.Copy(conn, buffered) // until the test closes the connection
	}))
	t.Cleanup(s.Close)
	return s
}

// dial is connect that closes the connection at the end of the test.
func (n *node) dial(path string) (net.Conn, *bufio.Reader) {
	n.t.Helper()
	conn, from := n.connect(path)
	n.t.Cleanup(func() { conn.Close() })
	return conn, from
}

// connect upgrades a connection to the node with the admin certificate.
func (n *node) connect(path string) (net.Conn, *bufio.Reader) {
	n.t.Helper()
	conn, err := tls.Dial("tcp", n.ports["10250"], &tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{*n.credentials()["admin cert"].cert}})
	if err != nil {
		n.t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", path)
	from := bufio.NewReader(conn)
	response, err := http.ReadResponse(from, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		n.t.Fatalf("upgrade: %+v %v", response, err)
	}
	return conn, from
}

func TestStreamsReachTheRuntime(t *testing.T) {
	runtime := &fakeRuntime{url: newEchoServer(t).URL}
	n := start(t, true, func(_ *Config, d *Deps) { d.Runtime = runtime })
	for path, want := range map[string]any{
		"/exec/ns/web/plain?input=1&output=1&error=1&command=a&command=b+c": &runtimeapi.ExecRequest{
			ContainerId: "plain-0", Cmd: []string{"a", "b c"}, Stdin: true, Stdout: true, Stderr: true},
		"/exec/ns/web/debug?tty=1&output=1&error=1&command=a": &runtimeapi.ExecRequest{
			ContainerId: "debug-0", Cmd: []string{"a"}, Stdout: true, Tty: true},
		"/attach/ns/web/main?output=1&error=1": &runtimeapi.AttachRequest{ContainerId: "main-1", Stdout: true, Tty: true},
		"/attach/ns/web/plain?tty=1&output=1":  &runtimeapi.AttachRequest{ContainerId: "plain-0", Stdout: true},
		"/portForward/ns/web":                  &runtimeapi.PortForwardRequest{PodSandboxId: "sandbox"},
	} {
		conn, from := n.dial(path)
		fmt.Fprintln(conn, "hello")
		if echo, err := from.ReadString('\n'); err != nil || echo != "hello\n" {
			t.Errorf("%s: echo is %q %v", path, echo, err)
		}
		if diff := cmp.Diff(want, runtime.last, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", path, diff)
		}
	}
}

func TestIdleStreamsAreClosed(t *testing.T) {
	runtime := &fakeRuntime{url: newEchoServer(t).URL}
	n := start(t, true, func(c *Config, d *Deps) {
		d.Runtime = runtime
		c.Kubelet.StreamingConnectionIdleTimeout.Duration = 50 * time.Millisecond
	})
	conn, from := n.dial("/exec/ns/web/main?output=1")
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := from.ReadByte(); !isClosed(err) {
		t.Errorf("error %v, want a closed connection", err)
	}
}

// isClosed reports whether the other side closed the connection before the read deadline.
func isClosed(err error) bool {
	var timeout net.Error
	return err != nil && (!errors.As(err, &timeout) || !timeout.Timeout())
}

// TestStreamsEndWithTheServer: the server closes open streams when it stops.
func TestStreamsEndWithTheServer(t *testing.T) {
	runtime := &fakeRuntime{url: newEchoServer(t).URL}
	var conn net.Conn
	var from *bufio.Reader
	t.Run("server", func(t *testing.T) {
		n := start(t, true, func(_ *Config, d *Deps) { d.Runtime = runtime })
		conn, from = n.connect("/exec/ns/web/main?output=1")
	})
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := from.ReadByte(); !isClosed(err) {
		t.Errorf("error %v, want a closed connection", err)
	}
}

// TestHungRuntimeDoesNotKeepTheServer: the server stops while the runtime accepts a stream and does not answer.
func TestHungRuntimeDoesNotKeepTheServer(t *testing.T) {
	for name, upgrade := range map[string]string{
		"SPDY": "SPDY/3.1",
		"WebSocket": "websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
			"Sec-WebSocket-Protocol: v5.channel.k8s.io",
	} {
		var giveUp *time.Timer
		t.Run(name, func(t *testing.T) {
			runtime, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer runtime.Close()
			n := start(t, true, func(c *Config, d *Deps) {
				d.Runtime, c.WebSockets = &fakeRuntime{url: "http://" + runtime.Addr().String()}, true
			})
			conn, err := tls.Dial("tcp", n.ports["10250"], &tls.Config{
				InsecureSkipVerify: true, Certificates: []tls.Certificate{*n.credentials()["admin cert"].cert}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			fmt.Fprintf(conn, "GET /exec/ns/web/main?output=1 HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", upgrade)
			hung, err := runtime.Accept()
			if err != nil {
				t.Fatal(err)
			}
			giveUp = time.AfterFunc(20*time.Second, func() { hung.Close() })
		})
		if !giveUp.Stop() {
			t.Errorf("%s: the server has waited for the runtime", name)
		}
	}
}

// TestTerminalSizeWithoutTerminal: a client that sends one is still seen to leave.
func TestTerminalSizeWithoutTerminal(t *testing.T) {
	runtime, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.Close()
	n := start(t, true, func(c *Config, d *Deps) {
		d.Runtime, c.WebSockets = &fakeRuntime{url: "http://" + runtime.Addr().String()}, true
	})
	dialer := websocket.Dialer{Subprotocols: []string{"v5.channel.k8s.io"}, TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{*n.credentials()["admin cert"].cert}}}
	client, _, err := dialer.Dial("wss://"+n.ports["10250"]+"/exec/ns/web/main?output=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := runtime.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if err := errors.Join(client.WriteMessage(websocket.BinaryMessage, []byte("\x04{\"Width\": 80, \"Height\": 25}")), client.Close()); err != nil {
		t.Fatal(err)
	}
	if err := stream.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, stream); isTimeout(err) {
		t.Error("the stream of the runtime is open after the client has left")
	}
}

func TestDebugHandlerToggles(t *testing.T) {
	n := start(t, true, func(c *Config, _ *Deps) {
		*c.Kubelet.EnableSystemLogHandler = false
		*c.Kubelet.EnableProfilingHandler = false
		*c.Kubelet.EnableDebugFlagsHandler = false
	})
	n.expect(map[string]string{
		"GET /logs/":                   "405 logs endpoint is disabled.\n",
		"GET /debug/pprof/":            "405 profiling endpoint is disabled.\n",
		"PUT /debug/flags/v":           "405 flags endpoint is disabled.\n",
		"GET /containerLogs/ns/web/x1": `404 container "x1" not found in pod "web"`,
	})
	var level string
	n = start(t, true, func(_ *Config, d *Deps) {
		d.SetVerbosity = func(l string) error { level = l; return nil }
	})
	admin := n.credentials()["admin cert"]
	if code, body, _ := n.get("GET", "/debug/pprof/cmdline", admin); code != 200 || !strings.Contains(body, "server.test") {
		t.Errorf("cmdline: %d %q", code, body)
	}
	n.expect(map[string]string{
		"GET /debug/flags/v": "406 unsupported http method\n",
		"PUT /debug/flags/v": "200 successfully set klog.logging.verbosity to \n",
	})
	if level != "" {
		t.Errorf("level set to %q", level)
	}
}

func FuzzParseLogQuery(f *testing.F) {
	f.Add("follow=1&tailLines=5&sinceTime=2026-11-15T00:00:00Z")
	f.Add("tail=all&limitBytes=9223372036854775807&sinceSeconds=9223372036854775807&stream=Stdout")
	now := time.Now()
	f.Fuzz(func(t *testing.T, text string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		o, err := parseLogQuery(query)
		if err != nil {
			return
		}
		if o.TailLines != nil && *o.TailLines < 0 || o.LimitBytes != nil && *o.LimitBytes <= 0 {
			t.Errorf("%q became %+v", text, o)
		}
		if since := sinceTime(o, now); o.SinceSeconds != nil && !since.Before(now) {
			t.Errorf("%q: since %v", text, since)
		}
	})
}

func FuzzParsePorts(f *testing.F) {
	f.Add("port=1,2&port=65535")
	f.Add("port=0")
	f.Fuzz(func(t *testing.T, text string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		ports, err := parsePorts(query)
		for _, port := range ports {
			if port < 1 || port > 65535 {
				t.Errorf("%q: port %d", text, port)
			}
		}
		if err == nil && len(ports) == 0 {
			t.Errorf("%q: neither ports nor an error", text)
		}
	})
}
