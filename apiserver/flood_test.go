package main

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

const (
	// floodDescriptors is the limit of a process that is flooded, idleConnections are more than it has.
	floodDescriptors = "400"
	idleConnections  = 600
)

// TestIdleConnectionsOfAPod: a pod that opens connections and sends nothing keeps neither the person in front of
// the node from the API, nor other pods.
func TestIdleConnectionsOfAPod(t *testing.T) {
	i := prepare(t)
	const bridge = "127.0.0.2" // a second address stands for that of the bridge
	i.under = []string{"prlimit", "--nofile=" + floodDescriptors, "--"}
	i.flags = append(i.flags, "--pod-address="+bridge)
	i.launch()
	_, port, err := net.SplitHostPort(i.address)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort(bridge, port)
	for range idleConnections {
		conn, err := from("127.0.0.3").Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if out, err := i.run("kubectl --request-timeout=10s get --raw /readyz", ""); err != nil || out != "ok" {
		t.Errorf("from loopback: %v\n%s", err, out)
	}
	other, err := handshake(t.Context(), "127.0.0.4", address)
	if err != nil {
		t.Errorf("from another pod: %v", err)
	} else {
		other.Close()
	}
	if log, err := os.ReadFile(i.log.Name()); err != nil || strings.Contains(string(log), "Accept error") {
		t.Errorf("the log has an error, %v:\n%s", err, log)
	}
}

// from dials from a source of its own.
func from(source string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: 10 * time.Second}
}

// handshake connects as a client that does not know the certificate, which is a sign of life.
func handshake(ctx context.Context, source, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	dialer := tls.Dialer{NetDialer: from(source), Config: &tls.Config{InsecureSkipVerify: true}}
	return dialer.DialContext(ctx, "tcp", address)
}
