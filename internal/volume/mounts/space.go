package mounts

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"swiftlet/internal/volume/plugin"
)

// Space is how full the file system at path is, whoever fills it. It waits for as long as
// the file system takes to answer.
func Space(path string) (plugin.Usage, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return plugin.Usage{}, wrap("look at the space of", path, err)
	}
	size := st.Frsize
	return plugin.Usage{
		CapacityBytes:  int64(st.Blocks) * size,
		AvailableBytes: int64(st.Bavail) * size,
		UsedBytes:      int64(st.Blocks-st.Bfree) * size,
		Inodes:         int64(st.Files),
		InodesFree:     int64(st.Ffree),
		InodesUsed:     int64(st.Files - st.Ffree),
	}, nil
}

// DeviceSize is the size of a raw device; what of it is used nobody can say.
func DeviceSize(path string) (plugin.Usage, error) {
	f, err := os.Open(path)
	if err != nil {
		return plugin.Usage{}, fmt.Errorf("look at the size of a device: %w", err)
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return plugin.Usage{}, fmt.Errorf("look at the size of a device: %w", err)
	}
	return plugin.Usage{CapacityBytes: size, AvailableBytes: -1, UsedBytes: -1, Inodes: -1, InodesFree: -1, InodesUsed: -1}, nil
}
