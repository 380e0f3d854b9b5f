package mounts

import (
	"fmt"
	"io"
	"os"
	"swiftlet/internal/pod"

	"golang.org/x/sys/unix"
)

// FilesystemUsage is the usage of the file system at path. It blocks for as long as the file system
// does not answer.
func FilesystemUsage(path string) (pod.VolumeUsage, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return pod.VolumeUsage{}, wrap("read usage of file system at", path, err)
	}
	size := st.Frsize
	return pod.VolumeUsage{
		CapacityBytes:  int64(st.Blocks) * size,
		AvailableBytes: int64(st.Bavail) * size,
		UsedBytes:      int64(st.Blocks-st.Bfree) * size,
		Inodes:         int64(st.Files),
		InodesFree:     int64(st.Ffree),
		InodesUsed:     int64(st.Files - st.Ffree),
	}, nil
}

// DeviceSize is the size of a block device. Its usage is unknown.
func DeviceSize(path string) (pod.VolumeUsage, error) {
	f, err := os.Open(path)
	if err != nil {
		return pod.VolumeUsage{}, fmt.Errorf("read size of device: %w", err)
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return pod.VolumeUsage{}, fmt.Errorf("read size of device: %w", err)
	}
	return pod.VolumeUsage{CapacityBytes: size, AvailableBytes: -1, UsedBytes: -1, Inodes: -1, InodesFree: -1, InodesUsed: -1}, nil
}
