package safepath

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// window is how many folders of a descent are open at once.
const window = 16

// readSize is how much of a folder's list is read, and held, at once.
const readSize = 16 << 10

// errMoved says that a folder is no longer where it was entered.
var errMoved = errors.New("a folder in it was moved meanwhile")

// identity tells a folder from all others of the node.
type identity struct{ dev, ino uint64 }

// folder is an open folder of a descent.
type folder struct {
	fd int
	id identity
	// name is what it is called in the folder above, "" where that is forgotten.
	name string
	// entries are read and not yet seen to; at is where the list goes on after the last one
	// that was.
	entries []entry
	at      int64
	// again asks for another pass over the folder, passes counts them.
	again  bool
	passes int
	failed bool
}

// entry is one line of a folder's list.
type entry struct {
	name string
	// file says that it is no folder. Not all file systems say.
	file bool
	next int64
}

// take is the next entry of those that are read.
func (f *folder) take() (entry, bool) {
	if len(f.entries) == 0 {
		return entry{}, false
	}
	e := f.entries[0]
	f.entries, f.at = f.entries[1:], e.next
	return e, true
}

// pass begins another pass where one is asked for and allowed.
func (f *folder) pass() bool {
	if !f.again || f.passes >= removePasses {
		return false
	}
	f.again = false
	f.passes++
	return true
}

// closed is what is remembered of a folder on the way down that is not held open.
type closed struct {
	id     identity
	at     int64
	failed bool
}

// descent is the way from a folder down into a tree of any depth. The first folder and the
// last ones are open; the others are found again by the way back up.
type descent struct {
	top   *folder
	above []closed
	open  []*folder
	buf   []byte
	// resolve are rules of openat2 for every step.
	resolve uint64
}

// newDescent begins at the open folder, which the descent owns from now on.
func newDescent(top int, resolve uint64) *descent {
	return &descent{top: &folder{fd: top, again: true}, buf: make([]byte, readSize), resolve: resolve | unix.RESOLVE_NO_SYMLINKS}
}

func (d *descent) close() {
	for _, f := range d.open {
		unix.Close(f.fd)
	}
	unix.Close(d.top.fd)
}

func (d *descent) atTop() bool { return len(d.open) == 0 }

func (d *descent) last() *folder {
	if d.atTop() {
		return d.top
	}
	return d.open[len(d.open)-1]
}

// push goes down into an open folder of the last one.
func (d *descent) push(f *folder) {
	d.open = append(d.open, f)
	if len(d.open) <= window {
		return
	}
	first := d.open[0]
	d.above = append(d.above, closed{first.id, first.at, first.failed})
	unix.Close(first.fd)
	d.open = slices.Delete(d.open, 0, 1)
}

// pop goes back up. A folder that was closed meanwhile must be the one that was left, and
// is read on from there.
func (d *descent) pop() error {
	child := d.last()
	defer unix.Close(child.fd)
	d.open = d.open[:len(d.open)-1]
	if len(d.open) > 0 || len(d.above) == 0 {
		return nil
	}
	was := d.above[len(d.above)-1]
	d.above = d.above[:len(d.above)-1]
	fd, id, err := openAs(child.fd, "..", d.resolve)
	if err != nil {
		return err
	}
	d.open = append(d.open, &folder{fd: fd, id: id, at: was.at, failed: was.failed, again: true})
	if id != was.id {
		return errMoved
	}
	_, err = unix.Seek(fd, was.at, unix.SEEK_SET)
	return err
}

// enter goes down into a folder of the last one, unless it is one to pass by.
func (d *descent) enter(name string, pass func(identity) bool) error {
	fd, id, err := openAs(d.last().fd, name, d.resolve|unix.RESOLVE_BENEATH)
	if err != nil {
		return err
	}
	if pass != nil && pass(id) {
		return unix.Close(fd)
	}
	d.push(&folder{fd: fd, id: id, name: name})
	return nil
}

// read takes the next part of the folder's list, none at its end.
func (d *descent) read(f *folder) error {
	for {
		n, err := unix.Getdents(f.fd, d.buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.ENOENT) { // removed by somebody else
			return nil
		}
		if err != nil || n <= 0 {
			return err
		}
		if f.entries = parse(d.buf[:n]); len(f.entries) > 0 {
			return nil
		}
	}
}

// parse reads what getdents64(2) wrote, but for . and ..
func parse(buf []byte) []entry {
	const length, kind, name = 16, 18, 19 // where they are; before them an inode and an offset
	var all []entry
	for len(buf) >= name {
		size := int(binary.NativeEndian.Uint16(buf[length:]))
		if size < name || size > len(buf) {
			break
		}
		text, _, _ := bytes.Cut(buf[name:size], []byte{0})
		if called := string(text); called != "." && called != ".." {
			file := buf[kind] != unix.DT_DIR && buf[kind] != unix.DT_UNKNOWN
			all = append(all, entry{name: called, file: file, next: int64(binary.NativeEndian.Uint64(buf[8:]))})
		}
		buf = buf[size:]
	}
	return all
}

func openAs(parent int, name string, resolve uint64) (int, identity, error) {
	fd, err := openat2(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, resolve)
	if err != nil {
		return -1, identity{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, identity{}, err
	}
	return fd, identity{uint64(st.Dev), st.Ino}, nil
}

// pathOf is the path of an entry of the folder, or of the folder itself, for messages: names
// are not remembered, so the kernel is asked. root is the path that the descent leads into.
func (d *descent) pathOf(root string, f *folder, name string) string {
	if f == d.top {
		return root
	}
	here, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(f.fd))
	if err != nil {
		return filepath.Join(root, "...", name) // deeper than a path is long
	}
	above, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(d.top.fd))
	// The caller may know the tree by another path, through a link.
	return filepath.Join(filepath.Dir(root), strings.TrimPrefix(here, above), name)
}
