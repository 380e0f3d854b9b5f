package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// NodeGetVolumeHealth reports the content of the volume's file "health": one line per problem, with
// a status of the specification, a reason and a message.
func (d *driver) NodeGetVolumeHealth(_ context.Context, r *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	if r.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "volume id is needed")
	}
	v, err := d.find(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(v.dir, "health"))
	if err != nil && !os.IsNotExist(err) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	health := &csi.VolumeHealth{VolumeId: v.ID}
	for line := range strings.Lines(string(text)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		reason, message, _ := strings.Cut(rest, " ")
		health.HealthStatuses = append(health.HealthStatuses, &csi.VolumeHealth_VolumeHealthEntry{
			Status: csi.VolumeHealthErrorType(csi.VolumeHealthErrorType_value[word]), Reason: reason, Message: message,
		})
	}
	return &csi.NodeGetVolumeHealthResponse{VolumeHealth: health}, nil
}
