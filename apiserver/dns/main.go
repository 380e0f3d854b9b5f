// swiftlet-dns is CoreDNS for a node without a control plane: it answers the names of Services and pods, and forwards
// others. It is given its sockets, so that queries wait while it starts, and reads them without privileges.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"swiftlet/apiserver/internal/pages"
	"swiftlet/internal/connlimit"
)

// Sockets that the program is started with.
const (
	packetSocket = 3
	streamSocket = 4
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "swiftlet-dns:", err)
		os.Exit(1)
	}
}

type flags struct {
	kubeconfig, domain, resolvConf string
}

func newCommand() *cobra.Command {
	var f flags
	command := &cobra.Command{
		Use:           "swiftlet-dns [flags]",
		Short:         "Answers DNS queries on the sockets 3 (UDP) and 4 (TCP) that it is started with",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(command *cobra.Command, _ []string) error { return run(command.Context(), f) },
	}
	set := command.Flags()
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig with which Services, endpoint slices and namespaces are read")
	set.StringVar(&f.domain, "cluster-domain", "cluster.local", "domain of Services")
	set.StringVar(&f.resolvConf, "resolv-conf", "/etc/resolv.conf", "file with the name servers that know other names")
	return command
}

// run answers queries until ctx is done. It returns an error when the name servers change: the next process has them.
func run(ctx context.Context, f flags) error {
	packets, streams, err := inherited()
	if err != nil {
		return err
	}
	own, err := netip.ParseAddrPort(packets.LocalAddr().String())
	if err != nil {
		return fmt.Errorf("read own address: %w", err)
	}
	watch, err := watchNameServers(f.resolvConf, own.Addr())
	if err != nil {
		return err
	}
	defer watch.close()
	server, shutdown, err := newServer(corefile(f, watch.servers)) // reads the kubeconfig
	if err != nil {
		return err
	}
	if err := dropPrivileges(); err != nil {
		return err
	}
	defer time.AfterFunc(settleTime, releaseMemory).Stop()
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return server.Serve(limit(streams)) })
	running.Go(func() error { return server.ServePacket(packets) })
	running.Go(func() error { return watch.run(ctx) })
	running.Go(func() error {
		<-ctx.Done()
		return errors.Join(server.Stop(), shutdown())
	})
	return running.Wait()
}

// limitLogs is how often a lack of descriptors is logged at most.
const limitLogs = 10 * time.Second

// limit bounds the connections of each pod and of all, which would use up the descriptors of the process. CoreDNS
// does not, and calls Accept again without a pause when it fails.
func limit(streams net.Listener) net.Listener {
	failed := rate.Sometimes{Interval: limitLogs}
	return connlimit.Limit(streams, connlimit.New(connlimit.ForProcess(), connlimit.Deps{Failed: func(err error) {
		failed.Do(func() { fmt.Fprintln(os.Stderr, "swiftlet-dns: accept failed:", err) })
	}}))
}

// settleTime is how long the memory that the start needs is kept.
const settleTime = 10 * time.Second

func releaseMemory() {
	debug.FreeOSMemory()
	if err := pages.Release(); err != nil {
		fmt.Fprintln(os.Stderr, "swiftlet-dns:", err)
	}
}

// inherited returns the sockets of the process.
func inherited() (net.PacketConn, net.Listener, error) {
	packetFile, streamFile := os.NewFile(packetSocket, "udp"), os.NewFile(streamSocket, "tcp")
	defer packetFile.Close()
	defer streamFile.Close()
	packets, err := net.FilePacketConn(packetFile)
	if err != nil {
		return nil, nil, fmt.Errorf("use inherited socket %d: %w", packetSocket, err)
	}
	streams, err := net.FileListener(streamFile)
	if err != nil {
		return nil, nil, fmt.Errorf("use inherited socket %d: %w", streamSocket, err)
	}
	return packets, streams, nil
}
