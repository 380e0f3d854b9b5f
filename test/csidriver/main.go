package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// options is how one driver differs from another.
type options struct {
	name     string
	node     string // its name for this node
	endpoint string // the socket it is called on
	register string // the socket it registers with; empty: nobody is told
	state    string // the folder of its volumes
	topology string // KEY=VALUE, empty for none
	most     int64  // volumes per node, 0 for any number
	without  string // capabilities it denies, separated by commas
	mountGID bool   // it hands volumes to the pod's group by itself
	health   bool   // it tells how volumes fare
	versions string // of the interface it speaks, separated by commas
}

func main() {
	var o options
	flag.StringVar(&o.name, "name", "test.csi.swiftlet.dev", "name of the driver")
	flag.StringVar(&o.node, "node", "node", "the driver's name for this node")
	flag.StringVar(&o.endpoint, "endpoint", "", "socket to serve on")
	flag.StringVar(&o.register, "register", "", "socket to register with")
	flag.StringVar(&o.state, "state", "", "folder for volumes")
	flag.StringVar(&o.topology, "topology", "", "KEY=VALUE of this node")
	flag.Int64Var(&o.most, "max-volumes", 0, "volumes per node")
	flag.StringVar(&o.without, "without", "", "node capabilities to deny")
	flag.BoolVar(&o.mountGID, "mount-group", false, "apply the pod's group")
	flag.BoolVar(&o.health, "health", false, "tell how volumes fare")
	flag.StringVar(&o.versions, "versions", "1.0.0", "versions of the interface that it speaks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "csidriver:", err)
		os.Exit(1)
	}
}

// run serves until ctx is done.
func run(ctx context.Context, o options) error {
	if o.endpoint == "" || o.state == "" {
		return errors.New("-endpoint and -state are needed")
	}
	if err := os.MkdirAll(filepath.Join(o.state, "volumes"), 0o755); err != nil {
		return err
	}
	d := &driver{options: o, store: store{dir: filepath.Join(o.state, "volumes")}}
	server := grpc.NewServer(grpc.UnaryInterceptor(d.record))
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	csi.RegisterNodeServer(server, d)
	group, ctx := errgroup.WithContext(ctx)
	if err := serve(ctx, group, o.endpoint, server); err != nil {
		return err
	}
	if o.register != "" {
		registrar := grpc.NewServer()
		registration.RegisterRegistrationServer(registrar, &registrant{options: o})
		// Only now: whoever finds this socket calls the other one at once.
		if err := serve(ctx, group, o.register, registrar); err != nil {
			return err
		}
	}
	return group.Wait()
}

// serve listens on a socket, in place of one that a killed driver has left.
func serve(ctx context.Context, group *errgroup.Group, path string, server *grpc.Server) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	group.Go(func() error { return server.Serve(listener) })
	group.Go(func() error { <-ctx.Done(); server.Stop(); return nil })
	return nil
}

// registrant tells the kubelet what this is.
type registrant struct {
	registration.UnimplementedRegistrationServer
	options
}

func (r *registrant) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: "CSIPlugin", Name: r.name, Endpoint: r.endpoint, SupportedVersions: strings.Split(r.versions, ",")}, nil
}

func (r *registrant) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	fmt.Fprintf(os.Stderr, "registered: %v %s\n", s.PluginRegistered, s.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

// denies reports whether the driver is to behave as if it could not do this.
func (o options) denies(capability string) bool {
	for _, c := range strings.Split(o.without, ",") {
		if c == capability {
			return true
		}
	}
	return false
}
