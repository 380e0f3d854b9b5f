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

// options are the flags.
type options struct {
	name       string
	node       string // the driver's name for this node
	endpoint   string // the socket of its services
	register   string // its registration socket; empty: it does not register
	state      string // the directory of its volumes
	topology   string // KEY=VALUE, empty for none
	maxVolumes int64  // volumes per node, 0 for any number
	disabled   string // capabilities that it does not report, comma-separated
	mountGID   bool   // it applies the pod's fsGroup itself
	health     bool   // it reports volume health
	versions   string // supported versions in its registration, comma-separated
}

func main() {
	var o options
	flag.StringVar(&o.name, "name", "test.csi.swiftlet.dev", "name of the driver")
	flag.StringVar(&o.node, "node", "node", "the driver's name for this node")
	flag.StringVar(&o.endpoint, "endpoint", "", "socket to serve on")
	flag.StringVar(&o.register, "register", "", "registration socket for the kubelet")
	flag.StringVar(&o.state, "state", "", "directory of volumes")
	flag.StringVar(&o.topology, "topology", "", "KEY=VALUE of this node")
	flag.Int64Var(&o.maxVolumes, "max-volumes", 0, "volumes per node")
	flag.StringVar(&o.disabled, "without", "", "node capabilities not to report, comma-separated")
	flag.BoolVar(&o.mountGID, "mount-group", false, "apply the pod's fsGroup")
	flag.BoolVar(&o.health, "health", false, "report volume health")
	flag.StringVar(&o.versions, "versions", "1.0.0", "supported versions in the registration")
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
		registration.RegisterRegistrationServer(registrar, &registrationServer{options: o})
		// Last: a kubelet that finds this socket connects to the endpoint at once.
		if err := serve(ctx, group, o.register, registrar); err != nil {
			return err
		}
	}
	return group.Wait()
}

// serve listens on a socket. It replaces a socket that a killed driver left.
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

// registrationServer serves the kubelet's plugin registration API.
type registrationServer struct {
	registration.UnimplementedRegistrationServer
	options
}

func (r *registrationServer) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: "CSIPlugin", Name: r.name, Endpoint: r.endpoint, SupportedVersions: strings.Split(r.versions, ",")}, nil
}

func (r *registrationServer) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	fmt.Fprintf(os.Stderr, "registered: %v %s\n", s.PluginRegistered, s.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

// isDisabled reports whether the driver must not report this capability.
func (o options) isDisabled(capability string) bool {
	for _, c := range strings.Split(o.disabled, ",") {
		if c == capability {
			return true
		}
	}
	return false
}
