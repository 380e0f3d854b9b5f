package stats

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"swiftlet/internal/filetree"
)

// tree is a walk that sums what the files below a directory occupy.
type tree struct {
	*filetree.Cursor
	sum    taken
	linked map[uint64]bool // files with several names that were counted
	missed error           // the first part that could not be read
}

// takenBelow is what dir and all below it occupies, without leaving its file system. A file
// with several names counts once. An error with a sum is of what the sum lacks.
func takenBelow(ctx context.Context, dir string) (taken, error) {
	cursor, err := filetree.Open(dir, filetree.OneMount)
	if err != nil {
		return taken{}, fmt.Errorf("walk: %w", err)
	}
	defer cursor.Close()
	t := &tree{Cursor: cursor, linked: map[uint64]bool{}}
	t.countDir()
	for t.step(ctx) {
	}
	if t.missed != nil {
		return t.sum, fmt.Errorf("walk %s: %w", dir, t.missed)
	}
	return t.sum, nil
}

// step counts the next entry of the current directory, or leaves it after its last one and
// where it cannot be read. It reports false at the end of the walk.
func (t *tree) step(ctx context.Context) bool {
	e, err := t.Next(ctx)
	switch {
	case err == nil && t.TypeOf(e) != unix.DT_DIR:
		t.count(e.Name)
		return true
	case err == nil:
		t.enter(e.Name)
		return true
	}
	if !errors.Is(err, io.EOF) && !gone(err) {
		t.miss(err)
	}
	if t.Depth() == 0 || ctx.Err() != nil {
		return false
	}
	if err := t.Leave(); err != nil {
		t.miss(err) // the rest of the tree still counts
	}
	return true
}

// enter counts a directory and goes into it. A mount point does not count and is not asked
// anything: it may hang.
func (t *tree) enter(name string) {
	switch err := t.Enter(name); {
	case err == nil:
		t.countDir()
	case gone(err), errors.Is(err, unix.EXDEV), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
	default: // the directory itself counts
		t.miss(err)
		t.count(name)
	}
}

// countDir counts the current directory.
func (t *tree) countDir() {
	var st unix.Stat_t
	if err := unix.Fstat(t.FD(), &st); err != nil {
		t.miss(err)
		return
	}
	t.sum.add(taken{uint64(st.Blocks) * 512, 1})
}

// count counts a file of the current directory.
func (t *tree) count(name string) {
	var st unix.Stat_t
	err := unix.Fstatat(t.FD(), name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	switch {
	case gone(err):
		return // pods write and delete during the walk
	case err != nil:
		t.miss(err)
		return
	case uint64(st.Dev) != t.ID().Dev:
		return
	}
	if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if t.linked[st.Ino] {
			return
		}
		t.linked[st.Ino] = true
	}
	t.sum.add(taken{uint64(st.Blocks) * 512, 1})
}

func (t *tree) miss(err error) {
	if t.missed == nil {
		t.missed = err
	}
}
