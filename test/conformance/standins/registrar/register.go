package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// run registers the driver and serves until ctx is done. If the kubelet rejects the registration, run
// fails, and the restart of the container is the next try.
func run(ctx context.Context, o options) error {
	name, err := driverName(ctx, o.driver)
	if err != nil {
		return fmt.Errorf("get name of the driver: %w", err)
	}
	socket := filepath.Join(o.registrationDir, name+"-reg.sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket) // removes the socket on close
	if err != nil {
		return err
	}
	r := &registrationServer{name: name, endpoint: o.register, refused: make(chan error, 1)}
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, r)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(listener) })
	group.Go(func() error {
		select {
		case err := <-r.refused:
			server.GracefulStop() // sends the pending response to the kubelet
			return err
		case <-ctx.Done():
			server.Stop()
			return nil
		}
	})
	if o.health != "" {
		group.Go(func() error { return serveHealth(ctx, o.health, socket) })
	}
	return group.Wait()
}

// driverName returns the driver's name. It waits until the driver answers.
func driverName(ctx context.Context, socket string) (string, error) {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	for {
		info, err := csi.NewIdentityClient(conn).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
		if err == nil {
			return info.GetName(), nil
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(time.Second):
		}
	}
}

// registrationServer serves the kubelet's plugin registration API.
type registrationServer struct {
	registration.UnimplementedRegistrationServer
	name, endpoint string
	refused        chan error
}

func (r *registrationServer) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: r.name, Endpoint: r.endpoint,
		SupportedVersions: []string{"1.0.0"}}, nil
}

func (r *registrationServer) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	fmt.Fprintf(os.Stderr, "registered: %v %s\n", s.GetPluginRegistered(), s.GetError())
	if !s.GetPluginRegistered() {
		select {
		case r.refused <- fmt.Errorf("register driver: rejected by the kubelet: %s", s.GetError()):
		default: // already stopping
		}
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// serveHealth serves /healthz, which succeeds while the registration socket exists.
func serveHealth(ctx context.Context, at, socket string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(socket); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	server := &http.Server{Addr: at, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
