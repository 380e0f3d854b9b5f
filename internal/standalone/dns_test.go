package standalone

import (
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"swiftlet/test/poll"
)

// TestDNSStartsWithTheFirstQuery: a query that comes while no program runs starts it, and the program has the sockets.
func TestDNSStartsWithTheFirstQuery(t *testing.T) {
	for _, network := range []string{"udp", "tcp"} {
		t.Run(network, func(t *testing.T) {
			programs, root := t.TempDir(), t.TempDir()
			writeProgram(t, filepath.Join(programs, "swiftlet-dns"), "#!/bin/sh\n[ -S /proc/$$/fd/3 ] && [ -S /proc/$$/fd/4 ] && echo started \"$@\"\nexec sleep 100\n")
			paths := Paths{root: root, run: t.TempDir(), bundle: "/b"}
			if err := paths.makeDirs(); err != nil {
				t.Fatal(err)
			}
			s := &Supervisor{
				cfg:  Config{Paths: paths, API: &APIConfig{Programs: programs}},
				deps: Deps{Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Clock: clock.RealClock{}, Out: io.Discard},
			}
			sockets, err := openDNSSockets("127.0.0.53:0")
			if err != nil {
				t.Fatal(err)
			}
			defer sockets.close()
			d := s.startDNS(sockets)
			started := func() bool {
				content, _ := os.ReadFile(paths.dnsLog())
				return strings.HasPrefix(string(content), "started --kubeconfig="+root+"/pki/dns.kubeconfig --cluster-domain=cluster.local")
			}
			if started() {
				t.Error("it runs before the first query")
			}
			file := sockets.udp
			if network == "tcp" {
				file = sockets.tcp
			}
			client, err := net.Dial(network, localAddress(t, file))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if _, err := client.Write([]byte("query")); err != nil {
				t.Fatal(err)
			}
			poll.Until(t, "start the program", started)
			if err := d.stop(); err != nil {
				t.Error(err)
			}
			if d.current != nil {
				t.Error("it runs after the stop")
			}
		})
	}
}

// TestDNSStopsWithoutQuery: a node whose pods look up no names never runs it.
func TestDNSStopsWithoutQuery(t *testing.T) {
	sockets, err := openDNSSockets("127.0.0.53:0")
	if err != nil {
		t.Fatal(err)
	}
	defer sockets.close()
	s := &Supervisor{cfg: Config{Paths: Paths{root: t.TempDir(), run: t.TempDir(), bundle: "/b"}, API: &APIConfig{Programs: t.TempDir()}},
		deps: Deps{Log: slog.New(slog.DiscardHandler), Clock: clock.RealClock{}}}
	if err := s.startDNS(sockets).stop(); err != nil {
		t.Error(err)
	}
}

// TestDNSOfAnother: pods use the name servers of the machine if its own one has the address.
func TestDNSOfAnother(t *testing.T) {
	taken, err := openDNSSockets("127.0.0.53:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.close()
	if _, err := openDNSSockets(localAddress(t, taken.udp)); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
	cfg := Config{Paths: Paths{root: t.TempDir(), run: t.TempDir(), bundle: "/b"}, Manifests: "/m", NodeName: "node", API: &APIConfig{Port: 6443}}
	for address, want := range map[string]bool{"": false, "10.88.0.1": true} {
		cfg.dnsAddress = address
		content, err := agentConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(content), "clusterDNS:\n- 10.88.0.1\nclusterDomain: cluster.local\n"); got != want {
			t.Errorf("with DNS at %q:\n%s", address, content)
		}
	}
}

// localAddress returns the address of a socket.
func localAddress(t *testing.T, socket *os.File) string {
	t.Helper()
	name, err := unix.Getsockname(int(socket.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	inet := name.(*unix.SockaddrInet4)
	return (&net.UDPAddr{IP: inet.Addr[:], Port: inet.Port}).String()
}
