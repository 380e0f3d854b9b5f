// Registrar replaces csi-node-driver-registrar of the CSI project in the images of upstream's
// end-to-end tests. It reads a driver's name and registers it with the kubelet. It does not support
// Windows, metrics, and the mode that only checks a registration.
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

// options are the flags of the original that the suite sets.
type options struct {
	driver          string // the driver's socket, as this program reaches it
	register        string // the same, as the kubelet reaches it
	registrationDir string // the kubelet's plugin registration directory
	health          string // address of /healthz; empty: none
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("csi-node-driver-registrar", flag.ContinueOnError)
	flags.StringVar(&o.driver, "csi-address", "/run/csi/socket", "the driver's socket")
	flags.StringVar(&o.register, "kubelet-registration-path", "", "the driver's socket, as the kubelet reaches it")
	flags.StringVar(&o.registrationDir, "plugin-registration-path", "/registration", "the kubelet's plugin registration directory")
	flags.StringVar(&o.health, "http-endpoint", "", "address of /healthz")
	flags.Duration("timeout", time.Second, "no effect: calls are retried until they succeed")
	flags.Int("v", 0, "no effect")
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
