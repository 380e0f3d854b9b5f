package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// options are the flags of the original that the suite sets.
type options struct {
	name        string
	node        string
	endpoint    string
	proxy       string // the other endpoint of a proxy; empty: this is a driver
	attach      bool
	topology    bool
	attachLimit int64 // volumes per node, 0 for any number
	expansion   bool  // NodeExpandVolume is needed
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("hostpathplugin", flag.ContinueOnError)
	flags.StringVar(&o.name, "drivername", "hostpath.csi.k8s.io", "name of the driver")
	flags.StringVar(&o.node, "nodeid", "", "the driver's name for this node")
	flags.StringVar(&o.endpoint, "endpoint", "unix:///tmp/csi.sock", "socket to serve on")
	flags.StringVar(&o.proxy, "proxy-endpoint", "", "proxy connections to -endpoint to this endpoint")
	flags.BoolVar(&o.attach, "enable-attach", false, "volumes must be attached")
	flags.BoolVar(&o.topology, "enable-topology", true, "volumes are accessible only from this node")
	flags.Int64Var(&o.attachLimit, "attach-limit", 0, "volumes per node")
	flags.BoolVar(&o.expansion, "node-expand-required", true, "expansion needs NodeExpandVolume")
	flags.String("statedir", "", "no effect: volumes are not stored")
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
		fmt.Fprintln(os.Stderr, "hostpathplugin:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.proxy != "" {
		return runProxy(ctx, o.endpoint, o.proxy)
	}
	return newDriver(o).run(ctx)
}

// address parses an endpoint: tcp://HOST:PORT, unix://PATH, or a path.
func address(endpoint string) (network, address string) {
	if rest, ok := strings.CutPrefix(endpoint, "tcp://"); ok {
		return "tcp", rest
	}
	return "unix", strings.TrimPrefix(endpoint, "unix://")
}
