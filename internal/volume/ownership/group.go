// Package ownership gives a volume's files to the pod's group.
package ownership

import (
	"fmt"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/volume/safepath"
)

const (
	readWrite = uint32(0o660)
	readOnly  = uint32(0o440)
	execute   = uint32(0o110)
)

// Group says whose a volume is to become.
type Group struct {
	ID int64
	// ReadOnly volumes get no write bits.
	ReadOnly bool
	// Policy OnRootMismatch spares a large volume the walk when its root is already right;
	// anything else always walks.
	Policy v1.PodFSGroupChangePolicy
}

// Apply hands everything below dir, then dir itself, to the group: it may read (and write)
// all, and what is made later in a folder belongs to it, too. The root comes last so that
// an interrupted walk is seen by the next one. A file that cannot be changed, such as one
// on a file system without owners, does not stop the rest.
func Apply(dir string, g Group) error {
	if g.Policy == v1.FSGroupChangeOnRootMismatch && g.matches(dir) {
		return nil
	}
	if err := safepath.Walk(dir, g.hand); err != nil {
		return fmt.Errorf("hand over to group %d: %w", g.ID, err)
	}
	return nil
}

// hand changes one file through a handle on it: between two looks at a path a pod that
// shares the volume could put a link there, and chmod would follow it.
func (g Group) hand(fd int) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return
	}
	_ = unix.Fchownat(fd, "", -1, int(g.ID), unix.AT_EMPTY_PATH)
	// A link has no mode of its own.
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFLNK {
		_ = unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), st.Mode&0o7777|g.mask(kind == unix.S_IFDIR))
	}
}

func (g Group) mask(dir bool) uint32 {
	mask := readWrite
	if g.ReadOnly {
		mask = readOnly
	}
	if dir {
		mask |= execute | unix.S_ISGID
	}
	return mask
}

// matches reports whether the root already is as Apply would leave it.
func (g Group) matches(dir string) bool {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false
	}
	mask := g.mask(true)
	return int64(st.Gid) == g.ID && st.Mode&mask == mask
}
