// Command bed starts a control plane and nodes on this machine, prints how to use them, and stops
// and removes everything on Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"swiftlet/test/bed"
	"swiftlet/test/images"
)

func main() {
	kubelet := flag.String("kubelet", string(bed.Ours), "kubelet of the nodes: ours or reference")
	nodes := flag.Int("nodes", 1, "number of nodes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, bed.KubeletKind(*kubelet), *nodes); err != nil {
		fmt.Fprintln(os.Stderr, "bed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kind bed.KubeletKind, nodes int) (err error) {
	b, err := bed.Start(ctx, os.Stderr)
	if err != nil {
		return err
	}
	defer func() {
		fmt.Fprintln(os.Stderr, "bed: stopping")
		err = errors.Join(err, b.Close())
	}()
	for n := range nodes {
		node, err := b.AddNode(ctx, fmt.Sprintf("node-%d", n+1))
		if err != nil {
			return err
		}
		if err := node.StartKubelet(ctx, bed.KubeletOptions{Kind: kind}); err != nil {
			return err
		}
		if err := node.WaitReady(ctx); err != nil {
			return err
		}
	}
	printUsage(b, kind)
	<-ctx.Done()
	return nil
}

func printUsage(b *bed.Bed, kind bed.KubeletKind) {
	fmt.Printf(`
The cluster is up; its nodes run kubelet %q. In another terminal:

  export KUBECONFIG=%s PATH=%s:$PATH
  kubectl get nodes -o wide
  kubectl run hello --image=%s -- sleep 3600
  kubectl get pods --all-namespaces -w

Logs are in %s. Ctrl-C stops the cluster and removes everything.
`, kind, b.ControlPlane.Kubeconfig, b.ToolDir(), images.Busybox, b.Logs())
}
