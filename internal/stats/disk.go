package stats

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// fsInfo is the capacity and usage of a file system.
type fsInfo struct {
	capacity, available, used      uint64
	inodes, inodesFree, inodesUsed uint64
}

func statfs(dir string) (fsInfo, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fsInfo{}, fmt.Errorf("statfs %s: %w", dir, err)
	}
	unit := uint64(st.Frsize)
	return fsInfo{
		capacity:   st.Blocks * unit,
		available:  st.Bavail * unit,
		used:       (st.Blocks - st.Bfree) * unit,
		inodes:     st.Files,
		inodesFree: st.Ffree,
		inodesUsed: st.Files - st.Ffree,
	}, nil
}

// diskUsage is the disk space and inodes of files.
type diskUsage struct{ bytes, inodes uint64 }

func (t *diskUsage) add(more diskUsage) {
	t.bytes += more.bytes
	t.inodes += more.inodes
}

// fileUsage is the usage of one file, zero if it is gone.
func fileUsage(path string) (diskUsage, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		if isGone(err) {
			return diskUsage{}, nil
		}
		return diskUsage{}, &pathError{path, err}
	}
	return diskUsage{uint64(st.Blocks) * 512, 1}, nil
}

// dirFilesUsage is the usage of the files directly in dir, without its directories.
func dirFilesUsage(dir string) (diskUsage, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if isGone(err) {
			return diskUsage{}, nil
		}
		return diskUsage{}, err
	}
	var sum diskUsage
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		t, err := fileUsage(filepath.Join(dir, e.Name()))
		if err != nil {
			return diskUsage{}, err
		}
		sum.add(t)
	}
	return sum, nil
}

// isMountPoint reports whether something is mounted at dir.
func isMountPoint(dir string) (bool, error) {
	var at, parent unix.Stat_t
	if err := errors.Join(unix.Stat(dir, &at), unix.Stat(filepath.Dir(dir), &parent)); err != nil {
		return false, &pathError{dir, err}
	}
	return at.Dev != parent.Dev, nil
}
