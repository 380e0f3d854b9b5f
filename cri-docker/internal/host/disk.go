package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Disk is what files below a directory use.
type Disk struct{ Bytes, Inodes uint64 }

// DiskUsage counts the files below a directory, without other file systems that are mounted there, such as
// the root file systems of running containers. Files that vanish meanwhile are not counted.
func DiskUsage(ctx context.Context, dir string) (Disk, error) {
	var total Disk
	var top unix.Stat_t
	if err := unix.Lstat(dir, &top); err != nil {
		return total, fmt.Errorf("measure disk usage: %s: %w", dir, err)
	}
	links := map[uint64]bool{} // files with several names are counted once
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var s unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &s)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case s.Dev != top.Dev && entry.IsDir():
			return fs.SkipDir
		case s.Dev != top.Dev || links[s.Ino]:
			return nil
		case s.Nlink > 1 && !entry.IsDir():
			links[s.Ino] = true
		}
		total.Bytes += uint64(s.Blocks) * 512
		total.Inodes++
		return nil
	})
	if err != nil {
		return total, fmt.Errorf("measure disk usage: %w", err)
	}
	return total, nil
}
