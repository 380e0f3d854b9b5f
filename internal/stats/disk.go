package stats

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// space is how full a file system is.
type space struct {
	capacity, available, used      uint64
	inodes, inodesFree, inodesUsed uint64
}

func spaceOf(dir string) (space, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return space{}, fmt.Errorf("measure the file system of %s: %w", dir, err)
	}
	unit := uint64(st.Frsize)
	return space{
		capacity:   st.Blocks * unit,
		available:  st.Bavail * unit,
		used:       (st.Blocks - st.Bfree) * unit,
		inodes:     st.Files,
		inodesFree: st.Ffree,
		inodesUsed: st.Files - st.Ffree,
	}, nil
}

// taken is what files occupy.
type taken struct{ bytes, inodes uint64 }

func (t *taken) add(more taken) {
	t.bytes += more.bytes
	t.inodes += more.inodes
}

// takenBy is what one file occupies; a file that is gone takes nothing.
func takenBy(path string) (taken, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		if gone(err) {
			return taken{}, nil
		}
		return taken{}, &pathError{path, err}
	}
	return taken{uint64(st.Blocks) * 512, 1}, nil
}

// takenByFiles is what the files that lie in dir itself occupy, without its folders.
func takenByFiles(dir string) (taken, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if gone(err) {
			return taken{}, nil
		}
		return taken{}, err
	}
	var sum taken
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		t, err := takenBy(filepath.Join(dir, e.Name()))
		if err != nil {
			return taken{}, err
		}
		sum.add(t)
	}
	return sum, nil
}

// ownFileSystem reports whether something is mounted at dir.
func ownFileSystem(dir string) (bool, error) {
	var at, above unix.Stat_t
	if err := errors.Join(unix.Stat(dir, &at), unix.Stat(filepath.Dir(dir), &above)); err != nil {
		return false, &pathError{dir, err}
	}
	return at.Dev != above.Dev, nil
}
