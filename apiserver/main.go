// swiftlet-apiserver is the Kubernetes API server of a node without a control plane, with its store in the
// same process.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"swiftlet/apiserver/internal/etcd"
	"swiftlet/apiserver/internal/manifests"
	"swiftlet/apiserver/internal/pki"
	"swiftlet/apiserver/internal/server"
	"swiftlet/internal/restoration"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "swiftlet-apiserver:", err)
		os.Exit(1)
	}
}

type flags struct {
	data, pki, node   string
	address, services string
	podAddress, pods  string
	kubeconfig, group string
	manifests         string
	volumes           string
}

func newCommand() *cobra.Command {
	var f flags
	command := &cobra.Command{
		Use:           "swiftlet-apiserver [flags] [-- flags of kube-apiserver]",
		Short:         "Serves the Kubernetes API for one node",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, more []string) error {
			return run(command.Context(), f, more)
		},
	}
	everywhere := command.PersistentFlags()
	everywhere.StringVar(&f.data, "data-dir", "/var/lib/swiftlet/api", "directory of the store")
	everywhere.StringVar(&f.pki, "pki-dir", "/var/lib/swiftlet/pki", "directory of certificates and keys, named as by kubeadm; what is missing is created, the CA too")
	set := command.Flags()
	set.StringVar(&f.node, "node-name", "", "name of the node")
	set.StringVar(&f.address, "address", "127.0.0.1:6443", "loopback address and port to listen on")
	set.StringVar(&f.podAddress, "pod-address", "", "address of the pods' bridge to listen on too, with the same port; it need not exist yet")
	set.StringVar(&f.services, "service-cidr", "10.89.0.0/16", "CIDR of cluster IPs")
	set.StringVar(&f.pods, "pod-cidr", "", "CIDR of the addresses of the node's pods, to which Services are led with nftables; without it nothing leads to Services")
	set.StringVar(&f.kubeconfig, "kubeconfig", "/var/lib/swiftlet/admin.kubeconfig", "file to write the administrator's kubeconfig to")
	set.StringVar(&f.group, "kubeconfig-group", "", "group whose members may read the kubeconfig; without it only its owner may")
	set.StringVar(&f.volumes, "volumes-dir", "/var/lib/swiftlet/volumes", "directory of the volumes of the StorageClass local-path")
	set.StringVar(&f.manifests, "manifests", "", "directory of files whose objects are applied; problems with them are written to standard output, one JSON object a line with all of them")
	command.AddCommand(newBackupCommand(&f), newRestoreCommand(&f))
	return command
}

// addresses returns the addresses to listen on. The first is a loopback address.
func (f flags) addresses() ([]netip.AddrPort, error) {
	first, err := netip.ParseAddrPort(f.address)
	if err != nil {
		return nil, fmt.Errorf("read --address: %w", err)
	}
	if f.podAddress == "" {
		return []netip.AddrPort{first}, nil
	}
	bridge, err := netip.ParseAddr(f.podAddress)
	if err != nil {
		return nil, fmt.Errorf("read --pod-address: %w", err)
	}
	return []netip.AddrPort{first, netip.AddrPortFrom(bridge, first.Port())}, nil
}

// credentials creates the certificates, and kubeconfigs for the administrator, the kubelet and DNS.
func (f flags) credentials(listen []netip.AddrPort, services netip.Prefix) error {
	if f.node == "" {
		return errors.New("set --node-name")
	}
	addresses := []net.IP{services.Masked().Addr().Next().AsSlice()} // that of the Service kubernetes
	for _, address := range listen {
		addresses = append(addresses, address.Addr().AsSlice())
	}
	if err := pki.Ensure(pki.Config{Dir: f.pki, Node: f.node, Addresses: addresses}, time.Now()); err != nil {
		return err
	}
	server := "https://" + listen[0].String()
	if err := pki.WriteKubeconfig(filepath.Join(f.pki, "kubelet.kubeconfig"), server, f.pki, "kubelet", ""); err != nil {
		return err
	}
	if err := pki.WriteKubeconfig(filepath.Join(f.pki, "dns.kubeconfig"), server, f.pki, "dns", ""); err != nil {
		return err
	}
	return pki.WriteKubeconfig(f.kubeconfig, server, f.pki, "admin", f.group)
}

// run serves until ctx is done. The store outlives the server, which still writes while it stops.
func run(ctx context.Context, f flags, more []string) (err error) {
	addresses, err := f.addresses()
	if err != nil {
		return err
	}
	services, err := netip.ParsePrefix(f.services)
	if err != nil {
		return fmt.Errorf("read --service-cidr: %w", err)
	}
	var pods netip.Prefix
	if f.pods != "" {
		if pods, err = netip.ParsePrefix(f.pods); err != nil {
			return fmt.Errorf("read --pod-cidr: %w", err)
		}
	}
	lock, err := restoration.Await(ctx, restoration.Dirs{Data: f.data, PKI: f.pki}) // before keys are read
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := f.credentials(addresses, services); err != nil {
		return err
	}
	store, err := etcd.Start(ctx, filepath.Join(f.data, "etcd"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return store.Wait(ctx) })
	running.Go(func() error {
		if err := store.ServeSnapshots(ctx, f.data); err != nil { // on a file system without sockets
			fmt.Fprintln(os.Stderr, "swiftlet-apiserver: no backups while it runs:", err)
		}
		return nil
	})
	running.Go(func() error {
		return server.Run(ctx, server.Config{
			Addresses: addresses, NodeName: f.node, PKI: f.pki, Services: services.Masked(), Flags: more,
			Pods: pods.Masked(), Volumes: f.volumes, Manifests: f.manifests, Report: report,
		}, store)
	})
	return running.Wait()
}

// report writes all problems with manifests to standard output.
func report(problems []manifests.Problem) {
	// The reader has gone if it fails.
	_ = json.NewEncoder(os.Stdout).Encode(struct {
		Problems []manifests.Problem `json:"problems"`
	}{problems})
}
