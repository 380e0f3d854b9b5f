package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func testDriver(t *testing.T, args ...string) *driver {
	t.Helper()
	o, err := parse(append(args, "--nodeid=n1"))
	if err != nil {
		t.Fatal(err)
	}
	return newDriver(o)
}

// TestVolumeLifecycle creates, publishes and unpublishes a volume.
func TestVolumeLifecycle(t *testing.T) {
	d := testDriver(t)
	capability := &csi.VolumeCapability{}
	made, err := d.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: []*csi.VolumeCapability{capability}})
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "mount")
	id := made.GetVolume().GetVolumeId()
	if _, err := d.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{VolumeId: id, TargetPath: target, VolumeCapability: capability}); err != nil {
		t.Fatal(err)
	}
	if stats, err := d.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: target}); err != nil || stats.GetUsage()[0].GetTotal() == 0 {
		t.Errorf("stats: %v, %v", stats, err)
	}
	if _, err := d.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(target); !os.IsNotExist(err) {
		t.Errorf("target after unpublish: %v", err)
	}
}

func TestAttachLimit(t *testing.T) {
	d := testDriver(t, "--enable-attach", "--attach-limit", "1")
	attach := func(id string) codes.Code {
		_, err := d.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: "n1"})
		return status.Code(err)
	}
	for _, want := range []codes.Code{codes.OK, codes.OK} {
		if got := attach("a"); got != want {
			t.Errorf("attach a: %v", got)
		}
	}
	if got := attach("b"); got != codes.ResourceExhausted {
		t.Errorf("attach beyond the limit: %v", got)
	}
}

// TestCallLogFields checks that the log has the field names that the suite reads.
func TestCallLogFields(t *testing.T) {
	line, err := json.Marshal(call{Method: "/csi.v1.Node/NodePublishVolume",
		Request:   &csi.NodePublishVolumeRequest{VolumeContext: map[string]string{"a": "b"}, Secrets: map[string]string{"c": "d"}},
		FullError: &fullError{Code: 5, Message: "gone"}})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Method    string
		Request   map[string]any
		FullError struct{ Code int }
	}
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatal(err)
	}
	if got.Request["volume_context"] == nil || got.Request["secrets"] == nil || got.FullError.Code != 5 {
		t.Errorf("wrote %s", line)
	}
}
