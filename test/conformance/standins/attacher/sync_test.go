package main

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// driver attaches all volumes except the one called full.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	detached []string
}

func (*driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: "d"}, nil
}

func (*driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{{
		Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{
			Type: csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME}}}}}, nil
}

func (*driver) ControllerPublishVolume(_ context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	if r.GetVolumeId() == "full" {
		return nil, status.Error(codes.ResourceExhausted, "no room")
	}
	return &csi.ControllerPublishVolumeResponse{PublishContext: map[string]string{"at": r.GetNodeId()}}, nil
}

func (d *driver) ControllerUnpublishVolume(_ context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	d.detached = append(d.detached, r.GetVolumeId())
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

func testAttacher(t *testing.T, d *driver, handle string) *attacher {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("unix:"+listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	volume := "pv"
	client := fake.NewClientset(
		&core.PersistentVolume{ObjectMeta: meta.ObjectMeta{Name: volume}, Spec: core.PersistentVolumeSpec{
			AccessModes:            []core.PersistentVolumeAccessMode{core.ReadWriteOnce},
			PersistentVolumeSource: core.PersistentVolumeSource{CSI: &core.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: handle}}}},
		&storage.CSINode{ObjectMeta: meta.ObjectMeta{Name: "n"}, Spec: storage.CSINodeSpec{Drivers: []storage.CSINodeDriver{{Name: "d", NodeID: "n-id"}}}},
		&storage.VolumeAttachment{ObjectMeta: meta.ObjectMeta{Name: "va"}, Spec: storage.VolumeAttachmentSpec{
			Attacher: "d", NodeName: "n", Source: storage.VolumeAttachmentSource{PersistentVolumeName: &volume}}})
	a, err := newAttacher(t.Context(), client, conn)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// step syncs once and returns the updated attachment.
func step(t *testing.T, a *attacher, wantError bool, change func(*storage.VolumeAttachment)) *storage.VolumeAttachment {
	t.Helper()
	get := func() *storage.VolumeAttachment {
		v, err := a.client.StorageV1().VolumeAttachments().Get(t.Context(), "va", meta.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := get()
	if change != nil {
		change(v)
	}
	if err := a.sync(t.Context(), v); (err != nil) != wantError {
		t.Fatalf("sync: %v", err)
	}
	return get()
}

func TestAttachAndDetach(t *testing.T) {
	d := &driver{}
	a := testAttacher(t, d, "vol")
	step(t, a, false, nil)
	v := step(t, a, false, nil)
	if !v.Status.Attached || v.Status.AttachmentMetadata["at"] != "n-id" || len(v.Finalizers) != 1 {
		t.Errorf("attached: %+v", v)
	}
	v = step(t, a, false, func(v *storage.VolumeAttachment) { now := meta.Now(); v.DeletionTimestamp = &now })
	if len(v.Finalizers) != 0 || len(d.detached) != 1 {
		t.Errorf("detached %v: %+v", d.detached, v)
	}
}

func TestAttachFails(t *testing.T) {
	a := testAttacher(t, &driver{}, "full")
	step(t, a, false, nil)
	v := step(t, a, true, nil)
	if e := v.Status.AttachError; v.Status.Attached || e == nil || e.ErrorCode == nil || *e.ErrorCode != int32(codes.ResourceExhausted) {
		t.Errorf("status: %+v", v.Status)
	}
}
