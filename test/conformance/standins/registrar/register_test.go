package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type identity struct {
	csi.UnimplementedIdentityServer
}

func (identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: "some.driver"}, nil
}

// TestRegister acts as driver and kubelet. The kubelet receives the driver's name and socket. When it
// rejects the registration, the registrar exits and removes its socket.
func TestRegister(t *testing.T) {
	dir := t.TempDir()
	o, err := parse([]string{"--v=5", "--csi-address=" + dir + "/csi.sock", "--kubelet-registration-path=/plugins/csi.sock", "--timeout=1m"})
	if err != nil {
		t.Fatal(err)
	}
	o.registrationDir = dir
	ended := make(chan error, 1)
	go func() { ended <- run(t.Context(), o) }()

	listener, err := net.Listen("unix", o.driver) // late: the registrar waits for it
	if err != nil {
		t.Fatal(err)
	}
	driver := grpc.NewServer()
	csi.RegisterIdentityServer(driver, identity{})
	go func() { _ = driver.Serve(listener) }()
	defer driver.Stop()

	socket := filepath.Join(dir, "some.driver-reg.sock")
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	kubelet := registration.NewRegistrationClient(conn)
	info, err := kubelet.GetInfo(t.Context(), &registration.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	if info.Type != "CSIPlugin" || info.Name != "some.driver" || info.Endpoint != "/plugins/csi.sock" {
		t.Errorf("registered as %v", info)
	}
	if _, err := kubelet.NotifyRegistrationStatus(t.Context(), &registration.RegistrationStatus{Error: "too old"}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "too old") {
		t.Errorf("run returned %v", err)
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("registration socket still exists: %v", err)
	}
}
