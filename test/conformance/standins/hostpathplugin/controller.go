package main

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// defaultSize is the size of a volume without a requested size.
const defaultSize = 1 << 30

func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	can := []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	}
	if d.attach {
		can = append(can, csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME)
	}
	answer := &csi.ControllerGetCapabilitiesResponse{}
	for _, t := range can {
		answer.Capabilities = append(answer.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}}})
	}
	return answer, nil
}

// CreateVolume derives the ID from the name, so that it is idempotent.
func (d *driver) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if r.GetName() == "" || len(r.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "name and volume capabilities are needed")
	}
	size := r.GetCapacityRange().GetRequiredBytes()
	if size == 0 {
		size = defaultSize
	}
	id := fmt.Sprintf("v-%x", sha256.Sum256([]byte(r.GetName())))[:34]
	d.mu.Lock()
	defer d.mu.Unlock()
	d.volumes[id] = max(size, d.volumes[id])
	v := &csi.Volume{VolumeId: id, CapacityBytes: d.volumes[id], VolumeContext: r.GetParameters()}
	if topologyOfNode := d.topologyOfNode(); topologyOfNode != nil {
		v.AccessibleTopology = []*csi.Topology{topologyOfNode}
	}
	return &csi.CreateVolumeResponse{Volume: v}, nil
}

func (d *driver) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.attached[r.GetVolumeId()] {
		return nil, status.Error(codes.FailedPrecondition, "the volume is attached")
	}
	delete(d.volumes, r.GetVolumeId())
	return &csi.DeleteVolumeResponse{}, nil
}

func (d *driver) ControllerPublishVolume(_ context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	if r.GetNodeId() != d.node {
		return nil, status.Errorf(codes.NotFound, "node %q is unknown", r.GetNodeId())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.attachLimit > 0 && !d.attached[r.GetVolumeId()] && int64(len(d.attached)) >= d.attachLimit {
		return nil, status.Error(codes.ResourceExhausted, "no more volumes can be attached")
	}
	d.attached[r.GetVolumeId()] = true
	return &csi.ControllerPublishVolumeResponse{}, nil
}

func (d *driver) ControllerUnpublishVolume(_ context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.attached, r.GetVolumeId())
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

func (d *driver) ControllerExpandVolume(_ context.Context, r *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	size := max(r.GetCapacityRange().GetRequiredBytes(), d.volumes[r.GetVolumeId()])
	d.volumes[r.GetVolumeId()] = size
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: size, NodeExpansionRequired: d.expansion}, nil
}
