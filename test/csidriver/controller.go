package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// defaultCapacity is the capacity of a volume without a requested size.
const defaultCapacity = 64 << 20

func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	var all []*csi.ControllerServiceCapability
	for _, t := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		all = append(all, &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{
			Rpc: &csi.ControllerServiceCapability_RPC{Type: t}}})
	}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: all}, nil
}

func (d *driver) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if r.GetName() == "" || len(r.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "name and volume capabilities are needed")
	}
	size := r.GetCapacityRange().GetRequiredBytes()
	if size == 0 {
		size = defaultCapacity
	}
	if limit := r.GetCapacityRange().GetLimitBytes(); limit > 0 && size > limit {
		return nil, status.Error(codes.OutOfRange, "no size fits")
	}
	d.volumesMu.Lock()
	defer d.volumesMu.Unlock()
	id := fmt.Sprintf("v-%x", sha256.Sum256([]byte(r.GetName())))[:18]
	v, err := d.store.get(id)
	switch {
	case err == nil && v.Capacity != size:
		return nil, status.Error(codes.AlreadyExists, "the volume has another size")
	case errors.Is(err, errUnknown):
		v = &volume{ID: id, Name: r.GetName(), Capacity: size}
		err = d.store.put(v)
	}
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: v.ID, CapacityBytes: v.Capacity, AccessibleTopology: d.topologies(),
	}}, nil
}

func (d *driver) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if r.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "volume id is needed")
	}
	d.volumesMu.Lock()
	defer d.volumesMu.Unlock()
	if err := d.store.delete(r.GetVolumeId()); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.DeleteVolumeResponse{}, nil
}

func (d *driver) ValidateVolumeCapabilities(_ context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if r.GetVolumeId() == "" || len(r.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "volume id and capabilities are needed")
	}
	if _, err := d.find(r.GetVolumeId()); err != nil {
		return nil, err
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: r.GetVolumeContext(), VolumeCapabilities: r.GetVolumeCapabilities(), Parameters: r.GetParameters(),
	}}, nil
}

func (d *driver) ControllerExpandVolume(_ context.Context, r *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	if r.GetVolumeId() == "" || r.GetCapacityRange() == nil {
		return nil, status.Error(codes.InvalidArgument, "volume id and capacity range are needed")
	}
	d.volumesMu.Lock()
	defer d.volumesMu.Unlock()
	v, err := d.grow(r.GetVolumeId(), r.GetCapacityRange().GetRequiredBytes())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: v.Capacity, NodeExpansionRequired: true}, nil
}

// grow increases the volume's capacity to at least size.
func (d *driver) grow(id string, size int64) (*volume, error) {
	v, err := d.find(id)
	if err != nil {
		return nil, err
	}
	if v.Capacity < size {
		v.Capacity = size
		if err := d.store.put(v); err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
	}
	return v, nil
}

// find returns a volume, or a gRPC error.
func (d *driver) find(id string) (*volume, error) {
	v, err := d.store.get(id)
	if errors.Is(err, errUnknown) {
		return nil, status.Errorf(codes.NotFound, "volume %s: %v", id, err)
	}
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return v, nil
}
