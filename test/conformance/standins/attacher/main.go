// Attacher replaces csi-attacher of the CSI project in the images of upstream's end-to-end tests. It
// calls the driver to attach and detach the volumes of VolumeAttachments and writes their status. It
// does not support secrets, migrated in-tree volumes, inline volumes, the finalizer on
// PersistentVolumes, leader election, and the comparison with the driver's list of volumes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func main() {
	socket := flag.String("csi-address", "/run/csi/socket", "the driver's socket")
	flag.String("feature-gates", "", "of no effect")
	flag.Int("v", 0, "of no effect")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *socket); err != nil {
		fmt.Fprintln(os.Stderr, "csi-attacher:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, socket string) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	a, err := newAttacher(ctx, client, conn)
	if err != nil {
		return err
	}
	return a.run(ctx)
}
