// Registrar stands in for the CSI project's csi-node-driver-registrar in the images of
// upstream's end-to-end tests: it asks a driver for its name and registers it with the
// kubelet. It leaves out Windows, metrics, and the mode that only checks a registration.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the original's flags, as far as the suite sets them.
type options struct {
	driver   string // the driver's socket, as this program reaches it
	register string // the same, as the kubelet reaches it
	folder   string // where the kubelet looks for plugins
	health   string // address to answer probes on; empty: none
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("csi-node-driver-registrar", flag.ContinueOnError)
	flags.StringVar(&o.driver, "csi-address", "/run/csi/socket", "the driver's socket")
	flags.StringVar(&o.register, "kubelet-registration-path", "", "the driver's socket, as the kubelet reaches it")
	flags.StringVar(&o.folder, "plugin-registration-path", "/registration", "folder in which the kubelet looks for plugins")
	flags.StringVar(&o.health, "http-endpoint", "", "address to answer probes on")
	flags.Duration("timeout", time.Second, "of no effect: each call is tried until it succeeds")
	flags.Int("v", 0, "of no effect")
	return o, flags.Parse(args)
}

func main() {
	o, err := parse(os.Args[1:])
	if err != nil {
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "csi-node-driver-registrar:", err)
		os.Exit(1)
	}
}
