package stats

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// shallowFolders is to which depth folders stay open while what is below them is walked.
// Deeper ones are closed and found again as the parent of their child: a pod can nest folders
// without end, and this process may open only so many files.
const shallowFolders = 64

// tree is a walk through the files below a folder. It goes from one open folder to the next,
// for no path can name what lies deeper than a few thousand bytes, and remembers of each
// folder above only where it is in it.
type tree struct {
	sum    taken
	linked map[uint64]bool // files with several names that were counted
	above  []folder        // from the top to the one that is being read
	missed error           // the first part that could not be read
	buf    [32 << 10]byte
}

type folder struct {
	fd       int // -1 for one that is closed
	dev, ino uint64
	next     int64 // where to read on
	mark     int64 // an earlier next
	left     uint  // how often it was left for a folder
}

// takenBelow is what dir and all below it occupies, without leaving its file system. A file
// with several names counts once. An error with a sum is of what the sum lacks.
func takenBelow(dir string) (taken, error) {
	t := &tree{linked: map[uint64]bool{}}
	defer t.cutTo(0)
	fd, err := retried(func() (int, error) {
		return unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err == nil {
		err = t.enter(fd)
	}
	if err != nil {
		return taken{}, fmt.Errorf("walk: %w", &pathError{dir, err})
	}
	for len(t.above) > 0 {
		if err := t.readOn(); err != nil {
			t.miss(err)
		}
	}
	if t.missed != nil {
		return t.sum, fmt.Errorf("walk %s: %w", dir, t.missed)
	}
	return t.sum, nil
}

// readOn counts the files of the folder at hand, up to its next folder, which is then the one
// at hand; or to its end, and then it is the one above. A folder that fails is left.
func (t *tree) readOn() error {
	at := &t.above[len(t.above)-1]
	if _, err := unix.Seek(at.fd, at.next, unix.SEEK_SET); err != nil {
		return errors.Join(err, t.leave())
	}
	// Little at first, for all that is read behind a folder is read again after it.
	for size := 1 << 10; ; size = min(2*size, len(t.buf)) {
		n, err := retried(func() (int, error) { return unix.Getdents(at.fd, t.buf[:size]) })
		if err != nil && !gone(err) {
			return errors.Join(err, t.leave())
		}
		if n <= 0 {
			return t.leave()
		}
		for rest := t.buf[:n]; len(rest) > 0; {
			var e entry
			e, rest = nextEntry(rest)
			at.next = e.next
			switch {
			case e.name == "." || e.name == "..":
			case !e.folder(at.fd):
				t.count(at, e.name)
			case at.repeats():
				return errors.Join(errNoWayOn, t.leave())
			case t.descend(at, e.name):
				return nil
			}
		}
	}
}

var errNoWayOn = errors.New("a folder cannot be read on from where it was left")

// descend makes a folder the one at hand, unless it is gone or something is mounted there.
func (t *tree) descend(in *folder, name string) bool {
	how := unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		// A mount is not asked anything: it may hang.
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS,
	}
	fd, err := retried(func() (int, error) { return unix.Openat2(in.fd, name, &how) })
	switch {
	case gone(err), errors.Is(err, unix.EXDEV), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return false
	case err != nil: // the folder itself counts
		t.miss(err)
		t.count(in, name)
		return false
	}
	if err := t.enter(fd); err != nil {
		t.miss(err)
		return false
	}
	if parent := len(t.above) - 2; parent >= shallowFolders {
		t.above[parent].close()
	}
	return true
}

// enter counts an open folder and makes it the one at hand.
func (t *tree) enter(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	t.sum.add(taken{uint64(st.Blocks) * 512, 1})
	t.above = append(t.above, folder{fd: fd, dev: uint64(st.Dev), ino: st.Ino})
	return nil
}

// leave makes the folder above the one at hand. Where the one that was left has been moved
// meanwhile, that is the deepest that is open still, and what lay between is not read on.
func (t *tree) leave() error {
	last := len(t.above) - 1
	if last > 0 && t.above[last-1].fd < 0 {
		if err := t.above[last-1].reopen(t.above[last].fd); err != nil {
			t.cutTo(shallowFolders)
			return err
		}
	}
	t.cutTo(last)
	return nil
}

// cutTo forgets the folders from depth on.
func (t *tree) cutTo(depth int) {
	for i := range t.above[depth:] {
		t.above[depth+i].close()
	}
	t.above = t.above[:depth]
}

// count counts a file.
func (t *tree) count(in *folder, name string) {
	var st unix.Stat_t
	_, err := retried(func() (int, error) {
		return 0, unix.Fstatat(in.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	})
	switch {
	case gone(err):
		return // pods write and delete while we walk
	case err != nil:
		t.miss(err)
		return
	case uint64(st.Dev) != in.dev:
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

// reopen opens the folder as the one above child, if that is where child still is.
func (f *folder) reopen(child int) error {
	fd, err := retried(func() (int, error) {
		return unix.Openat(child, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	if uint64(st.Dev) != f.dev || st.Ino != f.ino {
		return errors.Join(errors.New("a folder was moved during the walk"), unix.Close(fd))
	}
	f.fd = fd
	return nil
}

// repeats finds out, sooner or later, that the folder was left at the same place before: not
// every file system need be true to its places, and a walk must end.
func (f *folder) repeats() bool {
	if f.next == f.mark {
		return true
	}
	if f.left++; f.left&(f.left-1) == 0 {
		f.mark = f.next
	}
	return false
}

func (f *folder) close() {
	if f.fd >= 0 {
		_ = unix.Close(f.fd) // was only read
		f.fd = -1
	}
}

// entry is one name in a folder.
type entry struct {
	name string
	next int64 // where the one after it is
	kind byte
}

// nextEntry takes the first of the kernel's linux_dirent64.
func nextEntry(from []byte) (e entry, rest []byte) {
	const name = 19 // behind inode, offset, length and kind
	size := binary.NativeEndian.Uint16(from[16:])
	return entry{
		name: unix.ByteSliceToString(from[name:size]),
		next: int64(binary.NativeEndian.Uint64(from[8:])),
		kind: from[18],
	}, from[size:]
}

// folder tells whether the entry is one; not every file system says so by itself.
func (e entry) folder(in int) bool {
	if e.kind != unix.DT_UNKNOWN {
		return e.kind == unix.DT_DIR
	}
	var st unix.Stat_t
	err := unix.Fstatat(in, e.name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// retried does again what a signal or a renaming has ended.
func retried(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			return n, err
		}
	}
}
