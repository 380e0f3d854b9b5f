package standalone

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"swiftlet/test/poll"
)

// TestPodsCannotReachHostLoopback: a host port makes the kernel route loopback addresses over
// the pod bridge. A container that may send raw frames must still not reach what listens on
// the host's 127.0.0.1, nor send packets from that address.
func TestPodsCannotReachHostLoopback(t *testing.T) {
	if !box(t) {
		return
	}
	m := newMachine(t)
	recheck := &recheckClock{elapse: make(chan time.Time)}
	m.clock = recheck
	for _, backend := range []string{"nft", "iptables"} {
		t.Run(backend, func(t *testing.T) {
			if backend == "iptables" {
				hideNft(t)
			}
			m.t = t
			down := m.up(idleAgent)
			sandbox, _ := m.runPod("web", 8080)
			pod := m.podNetwork(sandbox)
			poll.Check(t, "reach the pod through its host port", func() error { return get("http://127.0.0.1:8080/healthz") })
			if content, err := os.ReadFile("/proc/sys/net/ipv4/conf/" + bridgeName + "/route_localnet"); err != nil || strings.TrimSpace(string(content)) != "1" {
				t.Fatalf("route_localnet of the bridge is %q (%v): the test tests nothing", content, err)
			}
			pod.testFrames(t)

			// Another program flushes the packet filter, and a pod is created after that.
			flush := []string{"iptables", "-t", "raw", "-F"}
			if backend == "nft" {
				flush = []string{"nft", "flush", "ruleset"}
			}
			if out, err := exec.Command(flush[0], flush[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v: %s", flush, err, out)
			}
			if backend == "iptables" {
				recheck.elapse <- time.Now()
			}
			poll.Check(t, "block loopback addresses again after a flush", func() error {
				return pod.blocked(t, frame{from: pod.address, to: loopback})
			})
			m.runPod("late", 8081)
			pod.testFrames(t)
			if err := down(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// recheckClock is the real clock, except that the test ends the interval between rule checks.
type recheckClock struct {
	clock.RealClock
	elapse chan time.Time
}

func (c *recheckClock) After(d time.Duration) <-chan time.Time {
	if d == localnetRecheck {
		return c.elapse
	}
	return c.RealClock.After(d)
}

var loopback = netip.MustParseAddr("127.0.0.1")

// podNetwork is a pod's network namespace as an attacker in the pod sees it.
type podNetwork struct {
	namespace string
	address   netip.Addr
	gateway   netip.Addr
	bridge    net.HardwareAddr
}

func (m *machine) podNetwork(sandbox string) podNetwork {
	m.t.Helper()
	answer, err := m.cri.PodSandboxStatus(m.t.Context(), sandbox, false)
	if err != nil {
		m.t.Fatal(err)
	}
	address, err := netip.ParseAddr(answer.Status.Network.Ip)
	if err != nil {
		m.t.Fatal(err)
	}
	link, err := net.InterfaceByName(bridgeName)
	if err != nil {
		m.t.Fatal(err)
	}
	namespaces, err := filepath.Glob(filepath.Join(m.cfg.Paths.run, "*", "*", "netns", "*"))
	if err != nil || len(namespaces) != 1 {
		m.t.Fatalf("network namespaces of pods: %v, %v; want one", namespaces, err)
	}
	return podNetwork{namespace: namespaces[0], address: address, gateway: m.cfg.PodCIDR.Masked().Addr().Next(), bridge: link.HardwareAddr}
}

// frame has the source and destination addresses of a crafted datagram.
type frame struct{ from, to netip.Addr }

// testFrames sends crafted frames to the host. One to the host's address on the bridge is
// accepted, which shows that the frames are well formed. Those with a loopback address are
// dropped.
func (p podNetwork) testFrames(t *testing.T) {
	t.Helper()
	if err := p.blocked(t, frame{from: p.address, to: p.gateway}); err == nil {
		t.Error("a frame to the host's address on the bridge did not arrive: the test tests nothing")
	}
	for name, f := range map[string]frame{
		"to loopback":   {from: p.address, to: loopback},
		"from loopback": {from: loopback, to: p.gateway},
		"both":          {from: loopback, to: loopback},
	} {
		if err := p.blocked(t, f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// blocked sends a datagram in a crafted frame from the pod, and returns an error if a socket on
// the host receives it.
func (p podNetwork) blocked(t *testing.T, f frame) error {
	t.Helper()
	host, err := net.ListenUDP("udp4", &net.UDPAddr{IP: f.to.AsSlice()})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	payload := []byte("from " + f.from.String())
	p.send(t, datagram(p.bridge, f, uint16(host.LocalAddr().(*net.UDPAddr).Port), payload))
	if err := host.SetReadDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 100)
	n, from, err := host.ReadFrom(got)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	case err != nil:
		t.Fatal(err)
	}
	return fmt.Errorf("a socket on %s received %q from %s", host.LocalAddr(), got[:n], from)
}

// send puts a frame on the pod's interface, as a process with NET_RAW in the pod can.
func (p podNetwork) send(t *testing.T, data []byte) {
	t.Helper()
	sent := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its namespace
		sent <- sendIn(p.namespace, data)
	}()
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

func sendIn(namespace string, data []byte) error {
	ns, err := os.Open(namespace)
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter %s: %w", namespace, err)
	}
	link, err := net.InterfaceByName("eth0")
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	copy(data[6:12], link.HardwareAddr)
	return unix.Sendto(fd, data, 0, &unix.SockaddrLinklayer{Ifindex: link.Index, Halen: 6})
}

// datagram builds an Ethernet frame with a UDP datagram. sendIn fills in the sender's hardware
// address. The datagram has no checksum, which IPv4 permits.
func datagram(to net.HardwareAddr, f frame, port uint16, payload []byte) []byte {
	data := append(append([]byte{}, to...), make([]byte, 6)...)
	data = binary.BigEndian.AppendUint16(data, unix.ETH_P_IP)

	ip := make([]byte, 20)
	ip[0], ip[8], ip[9] = 0x45, 64, unix.IPPROTO_UDP // version and length, time to live, protocol
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+8+len(payload)))
	copy(ip[12:], f.from.AsSlice())
	copy(ip[16:], f.to.AsSlice())
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))

	udp := make([]byte, 8)
	binary.BigEndian.PutUint16(udp[0:], 4000)
	binary.BigEndian.PutUint16(udp[2:], port)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)+len(payload)))
	return append(append(append(data, ip...), udp...), payload...)
}

// checksum computes the Internet checksum of a header of even length.
func checksum(header []byte) uint16 {
	var sum uint32
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
