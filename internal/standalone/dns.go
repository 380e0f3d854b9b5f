package standalone

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// clusterDomain is the domain of Services.
	clusterDomain = "cluster.local"
	dnsPort       = "53"
	// dnsGrace is how long the DNS server may take to exit on SIGTERM. It finishes open queries.
	dnsGrace = 5 * time.Second
)

// dnsSockets are those of the DNS server for pods. They are open before it runs and while it is restarted: queries wait
// in them.
type dnsSockets struct{ udp, tcp *os.File }

// listenDNS opens the sockets on the pod bridge, which need not exist yet. It returns nil without an API, and if another
// DNS server has the address: then pods use the name servers of this machine, as without an API.
func (s *Supervisor) listenDNS() *dnsSockets {
	if s.cfg.API == nil {
		return nil
	}
	sockets, err := openDNSSockets(net.JoinHostPort(s.cfg.bridgeAddress(), dnsPort))
	if err != nil {
		s.deps.Log.Warn("DNS: not started, pods use the name servers of this machine", "err", err)
		s.progress("pods cannot look up Services, another DNS server is in the way: %v", err)
		return nil
	}
	s.cfg.dnsAddress = s.cfg.bridgeAddress()
	return sockets
}

func openDNSSockets(address string) (*dnsSockets, error) {
	config := net.ListenConfig{Control: func(_, _ string, socket syscall.RawConn) (err error) {
		if controlErr := socket.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1) }); controlErr != nil {
			return controlErr
		}
		return err
	}}
	ctx := context.Background() // addresses are not looked up
	packets, err := config.ListenPacket(ctx, "udp4", address)
	if err != nil {
		return nil, fmt.Errorf("open DNS sockets: %w", err)
	}
	defer packets.Close()
	streams, err := config.Listen(ctx, "tcp4", address)
	if err != nil {
		return nil, fmt.Errorf("open DNS sockets: %w", err)
	}
	defer streams.Close()
	udp, udpErr := packets.(*net.UDPConn).File()
	tcp, tcpErr := streams.(*net.TCPListener).File()
	sockets := &dnsSockets{udp: udp, tcp: tcp}
	if err := errors.Join(udpErr, tcpErr); err != nil {
		sockets.close()
		return nil, fmt.Errorf("open DNS sockets: %w", err)
	}
	return sockets, nil
}

func (d *dnsSockets) close() {
	if d != nil {
		d.udp.Close()
		d.tcp.Close()
	}
}

// awaitQuery blocks until a query or a connection waits in a socket, or ctx is done.
func (d *dnsSockets) awaitQuery(ctx context.Context) error {
	done, cancel, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("wait for DNS queries: %w", err)
	}
	defer done.Close()
	stop := sync.OnceFunc(func() { cancel.Close() })
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	var waiting []unix.PollFd
	for _, f := range []*os.File{d.udp, d.tcp, done} {
		waiting = append(waiting, unix.PollFd{Fd: int32(f.Fd()), Events: unix.POLLIN})
	}
	for {
		if _, err := unix.Poll(waiting, -1); err == nil {
			return ctx.Err()
		} else if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for DNS queries: %w", err)
		}
	}
}

// dnsServer keeps the DNS server running from the first query on. A nil dnsServer is one that there cannot be.
type dnsServer struct {
	child
	cancel  context.CancelFunc
	stopped chan struct{} // is closed when the program has stopped
	stopErr error
}

// startDNS waits for queries in the background.
func (s *Supervisor) startDNS(sockets *dnsSockets) *dnsServer {
	if sockets == nil {
		return nil
	}
	p := s.cfg.Paths
	ctx, cancel := context.WithCancel(context.Background())
	d := &dnsServer{cancel: cancel, stopped: make(chan struct{}), child: child{
		name: "DNS server", logFile: p.dnsLog(), log: s.deps.Log, clock: s.deps.Clock,
		command: []string{
			s.cfg.API.program("swiftlet-dns"), "--kubeconfig=" + p.pki("dns.kubeconfig"),
			"--cluster-domain=" + clusterDomain, "--resolv-conf=" + resolvConf(),
		},
		files:  []*os.File{sockets.udp, sockets.tcp},
		system: syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}}
	go func() {
		defer close(d.stopped)
		// The kernel kills the program when the thread that started it ends. The thread ends with this goroutine.
		runtime.LockOSThread()
		if err := sockets.awaitQuery(ctx); err != nil {
			if ctx.Err() == nil {
				s.deps.Log.Error("DNS: not started, pods cannot look up names", "err", err)
			}
			return
		}
		var readers sync.WaitGroup
		readers.Go(func() { limitLog(ctx, d.logFile, maxLogSize, s.deps.Clock, s.deps.Log) })
		_ = d.run(ctx) // returns only when its context is done
		d.stopErr = d.child.stop(dnsGrace)
		readers.Wait()
	}()
	return d
}

// stop ends the DNS server.
func (d *dnsServer) stop() error {
	if d == nil {
		return nil
	}
	d.cancel()
	<-d.stopped
	return d.stopErr
}
