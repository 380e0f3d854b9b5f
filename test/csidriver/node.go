package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	info := &csi.NodeGetInfoResponse{NodeId: d.node, MaxVolumesPerNode: d.maxVolumes}
	if topologies := d.topologies(); len(topologies) > 0 {
		info.AccessibleTopology = topologies[0]
	}
	return info, nil
}

// topologies is the accessible topology of volumes: this node's.
func (d *driver) topologies() []*csi.Topology {
	key, value, ok := strings.Cut(d.topology, "=")
	if !ok {
		return nil
	}
	return []*csi.Topology{{Segments: map[string]string{key: value}}}
}

func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	types := []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	}
	if d.mountGID {
		types = append(types, csi.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP)
	}
	if d.health {
		types = append(types, csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH)
	}
	var all []*csi.NodeServiceCapability
	for _, t := range types {
		if !d.isDisabled(t.String()) {
			all = append(all, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{
				Rpc: &csi.NodeServiceCapability_RPC{Type: t}}})
		}
	}
	return &csi.NodeGetCapabilitiesResponse{Capabilities: all}, nil
}

// acquire locks the volumes for a call. It fails if the caller has given up meanwhile: the caller
// may already have sent the next call.
func (d *driver) acquire(ctx context.Context) (done func(), err error) {
	d.volumesMu.Lock()
	if ctx.Err() != nil {
		d.volumesMu.Unlock()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return d.volumesMu.Unlock, nil
}

func (d *driver) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if r.GetVolumeId() == "" || r.GetStagingTargetPath() == "" || r.GetVolumeCapability() == nil {
		return nil, status.Error(codes.InvalidArgument, "volume id, staging target path and volume capability are needed")
	}
	done, err := d.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	v, err := d.find(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	v.Staged = r.GetStagingTargetPath()
	if err := d.store.put(v); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if r.GetVolumeCapability().GetBlock() != nil {
		_, err = v.attachImage()
	} else {
		err = v.mountAt(r.GetStagingTargetPath(), r.GetVolumeCapability().GetMount())
	}
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// mountAt mounts the volume: its disk image if a file system is requested, else its directory.
func (v *volume) mountAt(target string, capability *csi.VolumeCapability_MountVolume) error {
	if err := os.MkdirAll(target, 0o750); err != nil {
		return err
	}
	if capability.GetFsType() != "" {
		return v.mountImage(target, capability.GetFsType(), capability.GetMountFlags())
	}
	return bind(v.contentDir(), target, false)
}

func (d *driver) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if r.GetVolumeId() == "" || r.GetStagingTargetPath() == "" {
		return nil, status.Error(codes.InvalidArgument, "volume id and staging target path are needed")
	}
	done, err := d.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	v, err := d.find(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if err := unmount(r.GetStagingTargetPath()); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if err := v.detachImage(); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	v.Staged = ""
	if err := d.store.put(v); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

func (d *driver) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if r.GetVolumeId() == "" || r.GetTargetPath() == "" || r.GetVolumeCapability() == nil {
		return nil, status.Error(codes.InvalidArgument, "volume id, target path and volume capability are needed")
	}
	done, err := d.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	ephemeral := r.GetVolumeContext()["csi.storage.k8s.io/ephemeral"] == "true"
	if _, err := d.store.get(r.GetVolumeId()); ephemeral && errors.Is(err, errUnknown) {
		if err := d.store.put(&volume{ID: r.GetVolumeId(), Capacity: defaultCapacity}); err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
	}
	v, err := d.find(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	staged := r.GetStagingTargetPath() != "" && !ephemeral
	if !ephemeral && !d.isDisabled("STAGE_UNSTAGE_VOLUME") {
		if !staged {
			return nil, status.Error(codes.InvalidArgument, "staging target path is needed")
		}
		if v.Staged == "" {
			return nil, status.Error(codes.FailedPrecondition, "the volume is not staged")
		}
	}
	singleWriter := r.GetVolumeCapability().GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
	if singleWriter && v.publishedElsewhere(r.GetTargetPath()) {
		return nil, status.Error(codes.FailedPrecondition, "the volume is for one writer and published elsewhere")
	}
	v.Targets = append(v.Targets, r.GetTargetPath())
	if err := d.store.put(v); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if err := publish(v, r, staged); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func publish(v *volume, r *csi.NodePublishVolumeRequest, staged bool) error {
	target := r.GetTargetPath()
	if r.GetVolumeCapability().GetBlock() != nil {
		device, err := v.attachImage()
		if err != nil {
			return err
		}
		return publishDevice(device, target, r.GetReadonly())
	}
	if err := os.MkdirAll(target, 0o750); err != nil {
		return err
	}
	source := r.GetStagingTargetPath()
	if !staged {
		source = v.contentDir()
	}
	if err := bind(source, target, r.GetReadonly()); err != nil {
		return err
	}
	if group := r.GetVolumeCapability().GetMount().GetVolumeMountGroup(); group != "" {
		id, err := strconv.Atoi(group)
		if err != nil {
			return err
		}
		return os.Chown(target, -1, id)
	}
	return nil
}

func (d *driver) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if r.GetVolumeId() == "" || r.GetTargetPath() == "" {
		return nil, status.Error(codes.InvalidArgument, "volume id and target path are needed")
	}
	done, err := d.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if _, err := d.store.get(r.GetVolumeId()); errors.Is(err, errUnknown) && strings.HasPrefix(r.GetVolumeId(), "csi-") {
		return &csi.NodeUnpublishVolumeResponse{}, nil // an ephemeral volume that is already deleted
	}
	v, err := d.find(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if err := unmount(r.GetTargetPath()); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if err := os.Remove(r.GetTargetPath()); err != nil && !os.IsNotExist(err) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	v.Targets = slices.DeleteFunc(v.Targets, func(t string) bool { return t == r.GetTargetPath() })
	if err := d.store.put(v); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if v.Name == "" { // an ephemeral volume, created by NodePublishVolume
		if err := d.store.delete(v.ID); err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
