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

// options are the original's flags, as far as the suite sets them.
type options struct {
	name      string
	node      string
	endpoint  string
	proxy     string // the other end, for a proxy; empty: this is the driver
	attach    bool
	topology  bool
	most      int64 // volumes per node, 0 for any number
	expansion bool  // growing needs the node
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("hostpathplugin", flag.ContinueOnError)
	flags.StringVar(&o.name, "drivername", "hostpath.csi.k8s.io", "name of the driver")
	flags.StringVar(&o.node, "nodeid", "", "the driver's name for this node")
	flags.StringVar(&o.endpoint, "endpoint", "unix:///tmp/csi.sock", "socket to serve on")
	flags.StringVar(&o.proxy, "proxy-endpoint", "", "join connections to -endpoint with those to this one")
	flags.BoolVar(&o.attach, "enable-attach", false, "volumes have to be attached")
	flags.BoolVar(&o.topology, "enable-topology", true, "volumes can be reached from this node alone")
	flags.Int64Var(&o.most, "attach-limit", 0, "volumes per node")
	flags.BoolVar(&o.expansion, "node-expand-required", true, "growing a volume needs the node")
	flags.String("statedir", "", "of no effect: volumes are kept nowhere")
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

// address takes an endpoint apart: tcp://HOST:PORT, unix://PATH, or a path.
func address(endpoint string) (network, address string) {
	if rest, ok := strings.CutPrefix(endpoint, "tcp://"); ok {
		return "tcp", rest
	}
	return "unix", strings.TrimPrefix(endpoint, "unix://")
}
