// Package filetree walks file trees that a pod can write to, from one open directory to the next.
// It follows no symbolic link, enters no mount point unless Scope allows it, and needs few file
// descriptors and little memory however deep or wide the tree is. It needs openat2(2), Linux 5.6.
package filetree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// OpenDirs is how many directories a cursor holds open, counted from the top, in addition to the
// current one. It closes deeper ones and opens them again as the parent of their child: a pod can
// nest directories without limit, and this process may open only so many files.
const OpenDirs = 32

// ErrMoved reports that a directory is no longer where the cursor entered it.
var ErrMoved = errors.New("directory was moved during the walk")

// errNoProgress reports that the cursor left a directory at the same offset before: offsets are
// not stable on every file system, and a walk must end.
var errNoProgress = errors.New("directory does not continue from the offset where it was left")

// Scope says whether a cursor may enter mount points.
type Scope uint64

const (
	AllMounts Scope = 0
	OneMount  Scope = unix.RESOLVE_NO_XDEV
)

// ID distinguishes a directory from all others of the node.
type ID struct{ Dev, Ino uint64 }

// dir is one directory between the top and the current one.
type dir struct {
	fd   int // -1 while it is closed
	id   ID
	next int64 // offset of the entry to read next
	mark int64 // an earlier next, -1 for none
	left uint  // how often it was left at next
	list *list // nil while it is closed
}

// list is the state of a directory that is kept only while it is open.
type list struct {
	name string // in the parent; "" after the directory was closed and opened again
	rest []byte // entries that were read and not yet returned
	size int    // of the next read
}

// Cursor is a position in a file tree. One goroutine at a time may use it.
type Cursor struct {
	path  string
	scope Scope
	dirs  []dir // from the top to the current one
	buf   [16 << 10]byte
}

// firstRead is the size of the first read. It is small because entries that were read ahead are
// read again after the directory was closed.
const firstRead = 1 << 10

// Open opens the directory path as the top of a tree. The last element of path must not be a
// symbolic link.
func Open(path string, scope Scope) (*Cursor, error) {
	fd, err := OpenAt(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return New(fd, path, scope)
}

// New returns a cursor at an open directory, which it owns from now on, also on an error. A
// directory opened with O_PATH can be entered, not read. path is the directory in messages.
func New(fd int, path string, scope Scope) (*Cursor, error) {
	c := &Cursor{path: path, scope: scope}
	if err := c.push(fd, ""); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return c, nil
}

// Close closes all directories that the cursor holds open.
func (c *Cursor) Close() { c.truncate(0) }

// Depth is 0 at the top.
func (c *Cursor) Depth() int { return len(c.dirs) - 1 }

// FD is the open descriptor of the current directory. The cursor closes it.
func (c *Cursor) FD() int { return c.current().fd }

// ID is that of the current directory.
func (c *Cursor) ID() ID { return c.current().id }

// Name is the name of the current directory when it was entered. It is "" for the top, and for a
// directory deeper than OpenDirs that was closed meanwhile.
func (c *Cursor) Name() string { return c.current().list.name }

func (c *Cursor) current() *dir { return &c.dirs[len(c.dirs)-1] }

// Next returns the next entry of the current directory, io.EOF after the last one.
func (c *Cursor) Next(ctx context.Context) (Entry, error) {
	d := c.current()
	for {
		for len(d.list.rest) > 0 {
			var e Entry
			e, d.next, d.list.rest = parseEntry(d.list.rest, d.next)
			if e.Name != "" && e.Name != "." && e.Name != ".." {
				return e, nil
			}
		}
		if err := ctx.Err(); err != nil {
			return Entry{}, err
		}
		size := d.list.size
		n, err := retry(func() (int, error) { return unix.Getdents(d.fd, c.buf[:size]) })
		switch {
		case errors.Is(err, unix.ENOENT): // the directory was removed
			return Entry{}, io.EOF
		case err != nil:
			return Entry{}, err
		case n <= 0:
			return Entry{}, io.EOF
		}
		d.list.rest, d.list.size = c.buf[:n], min(2*size, len(c.buf))
	}
}

// Enter makes a subdirectory the current directory. The error is the kernel's: EXDEV for a mount
// point with OneMount, ENOTDIR or ELOOP for an entry that is not a directory.
func (c *Cursor) Enter(name string) error {
	fd, err := OpenAt(c.FD(), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW,
		uint64(c.scope)|unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return err
	}
	if err := c.push(fd, name); err != nil {
		return err
	}
	parent := &c.dirs[len(c.dirs)-2]
	if len(c.dirs)-2 >= OpenDirs {
		parent.close()
	} else {
		parent.list.rest = bytes.Clone(parent.list.rest) // the child uses buf from now on
	}
	return nil
}

// push makes an open directory the current one.
func (c *Cursor) push(fd int, name string) error {
	id, err := identify(fd)
	if err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	c.dirs = append(c.dirs, dir{fd: fd, id: id, mark: -1, list: &list{name: name, size: firstRead}})
	return nil
}

// Leave makes the parent the current directory. If the parent cannot be opened again, because the
// directory was moved (ErrMoved) or for another reason, the deepest directory that is still open
// becomes the current one.
func (c *Cursor) Leave() error {
	last := len(c.dirs) - 1
	if parent := &c.dirs[last-1]; parent.fd < 0 {
		if err := parent.reopen(c.FD(), c.scope); err != nil {
			c.truncate(OpenDirs)
			return err
		}
	}
	c.truncate(last)
	return nil
}

// Rewind makes Next start again at the first entry of the current directory. It opens the directory
// again: ext4 reads nothing after a seek to the beginning if the first read was at the end.
func (c *Cursor) Rewind() error {
	d := c.current()
	fd, err := OpenAt(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
	switch {
	case errors.Is(err, unix.ENOENT): // the directory was removed, and has no entries
		return nil
	case err != nil:
		return err
	}
	_ = unix.Close(d.fd) // read-only
	d.fd = fd
	d.next, d.mark, d.left = 0, -1, 0
	d.list.rest, d.list.size = nil, firstRead
	return nil
}

// truncate closes and drops the directories from depth on.
func (c *Cursor) truncate(depth int) {
	for i := range c.dirs[depth:] {
		c.dirs[depth+i].close()
	}
	c.dirs = c.dirs[:depth]
}

// Path is the path of an entry of the current directory, or of the directory itself if name is
// "". It is for messages only: the cursor keeps no names and reads the path from /proc.
func (c *Cursor) Path(name string) string {
	if c.Depth() == 0 {
		return filepath.Join(c.path, name)
	}
	here, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(c.FD()))
	if err != nil {
		return filepath.Join(c.path, "...", name) // longer than a path can be
	}
	// The caller may know the top by another path, through a link.
	top, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(c.dirs[0].fd))
	return filepath.Join(c.path, strings.TrimPrefix(here, top), name)
}

// reopen opens the directory as the parent of child, if child is still in it.
func (d *dir) reopen(child int, scope Scope) error {
	if d.repeats() {
		return errNoProgress
	}
	fd, err := OpenAt(child, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, uint64(scope)|unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return err
	}
	id, err := identify(fd)
	if err == nil && id != d.id {
		err = ErrMoved
	}
	if err == nil {
		_, err = unix.Seek(fd, d.next, unix.SEEK_SET)
	}
	if err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	d.fd, d.list = fd, &list{size: firstRead}
	return nil
}

// repeats detects, not necessarily at once, that the offset has been seen before.
func (d *dir) repeats() bool {
	if d.next == d.mark {
		return true
	}
	if d.left++; d.left&(d.left-1) == 0 {
		d.mark = d.next
	}
	return false
}

func (d *dir) close() {
	if d.fd >= 0 {
		_ = unix.Close(d.fd) // read-only
	}
	d.fd, d.list = -1, nil
}

func identify(fd int) (ID, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return ID{}, err
	}
	return ID{uint64(st.Dev), st.Ino}, nil
}
