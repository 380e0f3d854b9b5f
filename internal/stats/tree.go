package stats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"golang.org/x/sys/unix"

	"swiftlet/internal/filetree"
)

// treeWalk sums the disk usage of the files below a directory.
type treeWalk struct {
	*filetree.Cursor
	sum diskUsage
	// linked is the sum of files with several links, each of which counts for its part. A pod can make links
	// only within a volume, and so many that they must not be remembered.
	linked   struct{ bytes, inodes float64 }
	firstErr error // of a part that could not be read
}

// treeUsage is the disk usage of dir and everything below it on the same file system. A file
// with several links counts once. An error with a non-zero sum says what the sum lacks.
func treeUsage(ctx context.Context, dir string) (diskUsage, error) {
	cursor, err := filetree.Open(dir, filetree.OneMount)
	if err != nil {
		return diskUsage{}, fmt.Errorf("walk %s: %w", dir, err)
	}
	defer cursor.Close()
	t := &treeWalk{Cursor: cursor}
	t.walk(ctx)
	if t.firstErr != nil {
		return t.sum, fmt.Errorf("walk %s: %w", dir, t.firstErr)
	}
	return t.sum, nil
}

func (t *treeWalk) walk(ctx context.Context) {
	t.countDir()
	for t.step(ctx) {
	}
	t.sum.add(diskUsage{uint64(math.Round(t.linked.bytes)), uint64(math.Round(t.linked.inodes))})
}

// step counts the next entry of the current directory, or leaves the directory after its last
// entry or a read error. It returns false at the end of the walk.
func (t *treeWalk) step(ctx context.Context) bool {
	e, err := t.Next(ctx)
	switch {
	case err == nil && t.TypeOf(e) != unix.DT_DIR:
		t.count(e.Name)
		return true
	case err == nil:
		t.enter(e.Name)
		return true
	}
	if !errors.Is(err, io.EOF) && !isGone(err) {
		t.recordErr(err)
	}
	if t.Depth() == 0 || ctx.Err() != nil {
		return false
	}
	if err := t.Leave(); err != nil {
		t.recordErr(err) // the rest of the tree still counts
	}
	return true
}

// enter counts a directory and enters it. It skips a mount point without a system call on it,
// which might hang.
func (t *treeWalk) enter(name string) {
	switch err := t.Enter(name); {
	case err == nil:
		t.countDir()
	case isGone(err), errors.Is(err, unix.EXDEV), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
	default: // the directory itself counts
		t.recordErr(err)
		t.count(name)
	}
}

// countDir counts the current directory.
func (t *treeWalk) countDir() {
	var st unix.Stat_t
	if err := unix.Fstat(t.FD(), &st); err != nil {
		t.recordErr(err)
		return
	}
	t.sum.add(diskUsage{uint64(st.Blocks) * 512, 1})
}

// count counts a file of the current directory.
func (t *treeWalk) count(name string) {
	var st unix.Stat_t
	err := unix.Fstatat(t.FD(), name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	switch {
	case isGone(err):
		return // pods write and delete during the walk
	case err != nil:
		t.recordErr(err)
		return
	case uint64(st.Dev) != t.ID().Dev:
		return
	}
	if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		t.linked.bytes += float64(st.Blocks) * 512 / float64(st.Nlink)
		t.linked.inodes += 1 / float64(st.Nlink)
		return
	}
	t.sum.add(diskUsage{uint64(st.Blocks) * 512, 1})
}

func (t *treeWalk) recordErr(err error) {
	if t.firstErr == nil {
		t.firstErr = err
	}
}
