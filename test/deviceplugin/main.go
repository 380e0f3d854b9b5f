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
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// options are the flags.
type options struct {
	resource  string
	dir       string // directory of the kubelet's socket and the plugin's
	socket    string // name of its socket in dir
	register  string // its socket in the plugin registration directory; empty: it registers on the kubelet's socket
	state     string
	cdi       string // directory of CDI specifications; empty: no CDI
	preferred string // the device of GetPreferredAllocation
	preStart  bool
}

func main() {
	var o options
	flag.StringVar(&o.resource, "resource", "", "name of the resource")
	flag.StringVar(&o.dir, "dir", "/var/lib/kubelet/device-plugins", "directory of device plugin sockets")
	flag.StringVar(&o.socket, "socket", "sample.sock", "name of the plugin's socket")
	flag.StringVar(&o.register, "register", "", "registration socket for the kubelet")
	flag.StringVar(&o.state, "state", "", "directory of devices and recorded calls")
	flag.StringVar(&o.cdi, "cdi", "", "directory of CDI specifications")
	flag.StringVar(&o.preferred, "prefers", "", "preferred device")
	flag.BoolVar(&o.preStart, "prestart", false, "require PreStartContainer")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "deviceplugin:", err)
		os.Exit(1)
	}
}

// run serves until ctx is done.
func run(ctx context.Context, o options) error {
	if o.resource == "" || o.state == "" {
		return errors.New("-resource and -state are needed")
	}
	for _, dir := range []string{filepath.Join(o.state, "devices"), o.dir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := watcher.Add(o.dir); err != nil {
		return err
	}
	if o.register == "" {
		return o.followKubelet(ctx, watcher)
	}
	group, ctx := errgroup.WithContext(ctx)
	if err := serve(ctx, group, filepath.Join(o.dir, o.socket), o.service); err != nil {
		return err
	}
	// Last: a kubelet that finds this socket connects to the plugin's socket at once.
	if err := serve(ctx, group, o.register, func(s *grpc.Server) {
		registration.RegisterRegistrationServer(s, &registrationServer{options: o})
	}); err != nil {
		return err
	}
	return group.Wait()
}

func (o options) service(s *grpc.Server) {
	pluginapi.RegisterDevicePluginServer(s, &plugin{options: o})
}

// followKubelet serves and registers again after each kubelet restart: a kubelet removes the
// sockets of plugins when it starts.
func (o options) followKubelet(ctx context.Context, watcher *fsnotify.Watcher) error {
	kubelet := filepath.Join(o.dir, "kubelet.sock")
	for ctx.Err() == nil {
		serving, stop := context.WithCancel(ctx)
		group, serving := errgroup.WithContext(serving)
		err := serve(serving, group, filepath.Join(o.dir, o.socket), o.service)
		if err == nil {
			err = o.registerWithKubelet(serving, kubelet)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "deviceplugin:", err)
		}
		for again := false; !again && ctx.Err() == nil; {
			select {
			case e := <-watcher.Events:
				again = e.Op.Has(fsnotify.Create) && e.Name == kubelet
			case <-ctx.Done():
			}
		}
		stop()
		_ = group.Wait()
	}
	return nil
}

// registerWithKubelet registers on the kubelet's socket.
func (o options) registerWithKubelet(ctx context.Context, kubelet string) error {
	conn, err := grpc.NewClient("unix:"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err = pluginapi.NewRegistrationClient(conn).Register(ctx, &pluginapi.RegisterRequest{
		Version: pluginapi.Version, Endpoint: o.socket, ResourceName: o.resource, Options: o.pluginOptions(),
	})
	return err
}

// serve listens on a socket. It replaces a socket that a killed plugin left.
func serve(ctx context.Context, group *errgroup.Group, path string, register func(*grpc.Server)) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	// The next plugin replaces the socket. Unlinking it on close could remove that plugin's.
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	server := grpc.NewServer()
	register(server)
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
	return &registration.PluginInfo{Type: "DevicePlugin", Name: r.resource, Endpoint: filepath.Join(r.dir, r.socket), SupportedVersions: []string{pluginapi.Version}}, nil
}

func (r *registrationServer) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	fmt.Fprintf(os.Stderr, "registered: %v %s\n", s.PluginRegistered, s.Error)
	return &registration.RegistrationStatusResponse{}, nil
}
