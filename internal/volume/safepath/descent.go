package safepath

import (
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
	// names are entries that are read and not yet seen to.
	names []string
	// again asks for another pass over the folder, passes counts them.
	again  bool
	passes int
	failed bool
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
	failed bool
}

// descent is the way from a folder down into a tree of any depth. The first folder and the
// last ones are open; the others are found again by the way back up.
type descent struct {
	top   *folder
	above []closed
	open  []*folder
	buf   []byte
}

// newDescent begins at the open folder, which the descent owns from now on.
func newDescent(top int) *descent {
	return &descent{top: &folder{fd: top, again: true}, buf: make([]byte, readSize)}
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
	d.above = append(d.above, closed{first.id, first.failed})
	unix.Close(first.fd)
	d.open = slices.Delete(d.open, 0, 1)
}

// pop goes back up. A folder that was closed meanwhile must be the one that was left, and
// is to be read from its beginning.
func (d *descent) pop() error {
	child := d.last()
	defer unix.Close(child.fd)
	d.open = d.open[:len(d.open)-1]
	if len(d.open) > 0 || len(d.above) == 0 {
		return nil
	}
	was := d.above[len(d.above)-1]
	d.above = d.above[:len(d.above)-1]
	// Up and no further: the boundary of a mount holds here, too.
	fd, id, err := openAs(child.fd, "..", unix.RESOLVE_NO_XDEV|unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return err
	}
	if id != was.id {
		unix.Close(fd)
		return errMoved
	}
	d.open = append(d.open, &folder{fd: fd, id: id, failed: was.failed, again: true})
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
		// Entries that are . and .. are left out; there may be no other in this part.
		if _, _, f.names = unix.ParseDirent(d.buf[:n], -1, nil); len(f.names) > 0 {
			return nil
		}
	}
}

// openFolder opens a folder of an open one: no link, no mount point.
func openFolder(parent int, name string) (int, identity, error) {
	return openAs(parent, name, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_XDEV|unix.RESOLVE_NO_SYMLINKS)
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
