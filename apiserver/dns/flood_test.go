package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"swiftlet/test/pdeathsig"
)

// TestMain runs the program instead of the tests if a test has started it.
func TestMain(m *testing.M) {
	if os.Getenv("SWIFTLET_DNS") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const (
	// floodDescriptors is the limit of a process that is flooded, idleConnections are more than it has.
	floodDescriptors = "400"
	idleConnections  = 600
	// answerLimit is shorter than the time after which CoreDNS closes an idle connection.
	answerLimit = 2 * time.Second
	startLimit  = time.Minute
)

const noAPIServer = `apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: a, context: {cluster: a}}]
current-context: a
`

// TestIdleConnectionsOfAPod: a pod that opens connections over TCP and sends nothing keeps no other pod from DNS.
func TestIdleConnectionsOfAPod(t *testing.T) {
	address := startServer(t)
	waitForAnswer(t, address)
	for range idleConnections {
		conn, err := from("127.0.0.3").Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	began := time.Now()
	if err := ask("127.0.0.4", address, answerLimit); err != nil {
		t.Errorf("another pod, after %s: %v", time.Since(began).Round(time.Millisecond), err)
	}
}

// startServer runs the program and returns the address of its sockets.
func startServer(t *testing.T) string {
	t.Helper()
	streams, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer streams.Close()
	address := streams.Addr().String()
	packets, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	packetFile, err := packets.(*net.UDPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer packetFile.Close()
	streamFile, err := streams.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer streamFile.Close()
	dir := t.TempDir()
	kubeconfig, resolvConf := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "resolv.conf")
	for file, content := range map[string]string{kubeconfig: noAPIServer, resolvConf: ""} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := exec.Command("prlimit", "--nofile="+floodDescriptors, "--", os.Args[0], "--kubeconfig="+kubeconfig, "--resolv-conf="+resolvConf)
	server.Env = append(os.Environ(), "SWIFTLET_DNS=1")
	server.ExtraFiles = []*os.File{packetFile, streamFile}
	var log lockedBuffer
	server.Stdout, server.Stderr = &log, &log
	exited, err := pdeathsig.Start(server) // the program ends with the thread that has started it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		<-exited
		if t.Failed() {
			t.Logf("the server's log:\n%s", log.String())
		}
	})
	return address
}

// waitForAnswer returns when the server has answered.
func waitForAnswer(t *testing.T, address string) {
	t.Helper()
	deadline := time.Now().Add(startLimit)
	for {
		err := ask("127.0.0.4", address, answerLimit)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no answer after %s: %v", startLimit, err)
		}
	}
}

// ask sends a query over TCP. Any answer will do: there is no API server.
func ask(source, address string, limit time.Duration) error {
	client := dns.Client{Net: "tcp", Dialer: from(source), Timeout: limit}
	_, _, err := client.Exchange(new(dns.Msg).SetQuestion("kubernetes.default.svc.cluster.local.", dns.TypeA), address)
	return err
}

// from dials from a source of its own.
func from(source string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: answerLimit}
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
