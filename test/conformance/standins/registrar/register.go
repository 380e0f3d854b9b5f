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

// run registers the driver and serves until ctx is done, or until the kubelet refuses: the
// container then starts again, which is the next try.
func run(ctx context.Context, o options) error {
	name, err := driverName(ctx, o.driver)
	if err != nil {
		return fmt.Errorf("ask the driver's name: %w", err)
	}
	socket := filepath.Join(o.folder, name+"-reg.sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket) // the socket goes when it is closed
	if err != nil {
		return err
	}
	r := &registrant{name: name, endpoint: o.register, refused: make(chan error, 1)}
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, r)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(listener) })
	group.Go(func() error {
		select {
		case err := <-r.refused:
			server.GracefulStop() // the kubelet still gets its answer
			return err
		case <-ctx.Done():
			server.Stop()
			return nil
		}
	})
	if o.health != "" {
		group.Go(func() error { return answerProbes(ctx, o.health, socket) })
	}
	return group.Wait()
}

// driverName waits for the driver, however long it takes to come up.
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

// registrant tells the kubelet what this is.
type registrant struct {
	registration.UnimplementedRegistrationServer
	name, endpoint string
	refused        chan error
}

func (r *registrant) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: r.name, Endpoint: r.endpoint,
		SupportedVersions: []string{"1.0.0"}}, nil
}

func (r *registrant) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	fmt.Fprintf(os.Stderr, "registered: %v %s\n", s.GetPluginRegistered(), s.GetError())
	if !s.GetPluginRegistered() {
		select {
		case r.refused <- fmt.Errorf("the kubelet refused: %s", s.GetError()):
		default: // it is ending already
		}
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// answerProbes says that all is well while the socket is there.
func answerProbes(ctx context.Context, at, socket string) error {
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
