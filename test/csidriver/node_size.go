package main

import (
	"context"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func (d *driver) NodeExpandVolume(_ context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if r.GetVolumeId() == "" || r.GetVolumePath() == "" {
		return nil, status.Error(codes.InvalidArgument, "volume id and volume path are needed")
	}
	d.volumesMu.Lock()
	defer d.volumesMu.Unlock()
	v, err := d.grow(r.GetVolumeId(), r.GetCapacityRange().GetRequiredBytes())
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(r.GetVolumePath()); err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	if err := v.expandImage(); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: v.Capacity}, nil
}

// expandImage extends the disk image, its loop device and its file system to the volume's capacity.
func (v *volume) expandImage() error {
	if _, err := os.Stat(v.image()); os.IsNotExist(err) {
		return nil // a directory has no size
	}
	if err := v.makeImage(); err != nil {
		return err
	}
	device, err := v.loopDevice()
	if err != nil || device == "" {
		return err
	}
	if _, err := runTool("losetup", "-c", device); err != nil {
		return err
	}
	if kind, err := runTool("blkid", "-p", "-o", "value", "-s", "TYPE", device); err != nil || kind != "ext4" {
		return nil // a raw device
	}
	_, err = runTool("resize2fs", device)
	return err
}

func (d *driver) NodeGetVolumeStats(_ context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if r.GetVolumeId() == "" || r.GetVolumePath() == "" {
		return nil, status.Error(codes.InvalidArgument, "volume id and volume path are needed")
	}
	v, err := d.find(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(r.GetVolumePath())
	if err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	if !info.IsDir() {
		return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: v.Capacity}}}, nil
	}
	var st unix.Statfs_t
	if err := unix.Statfs(r.GetVolumePath(), &st); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	block := st.Bsize
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: int64(st.Blocks) * block, Available: int64(st.Bavail) * block, Used: int64(st.Blocks-st.Bfree) * block},
		{Unit: csi.VolumeUsage_INODES, Total: int64(st.Files), Available: int64(st.Ffree), Used: int64(st.Files - st.Ffree)},
	}}, nil
}
