// Package ownership changes a volume's files to the pod's fsGroup.
package ownership

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/volume/safepath"
)

const (
	readWrite = uint32(0o660)
	readOnly  = uint32(0o440)
	execute   = uint32(0o110)
)

// Group is the desired group of a volume.
type Group struct {
	ID int64
	// ReadOnly volumes get no write bits.
	ReadOnly bool
	// Policy OnRootMismatch skips a volume whose root has the desired group and mode.
	Policy v1.PodFSGroupChangePolicy
}

// Apply changes everything below dir, then dir itself, to the group, which may read (and write) all
// files; files created later inherit it. The root comes last so that the next call detects an
// interrupted walk. A file that cannot be changed, such as on a file system without owners, is
// skipped. A walk that takes long is reported to p.
func Apply(dir string, g Group, p Progress) error {
	if g.Policy == v1.FSGroupChangeOnRootMismatch && g.matches(dir) {
		return nil
	}
	var files atomic.Int64
	stop := p.start(&files)
	defer stop()
	visit := func(fd int) {
		files.Add(1)
		g.apply(fd)
	}
	if err := safepath.Walk(dir, visit); err != nil {
		return fmt.Errorf("change group to %d: %w", g.ID, err)
	}
	return nil
}

// apply changes one file through its descriptor: a pod that shares the volume could replace a path
// with a symbolic link, which chmod would follow.
func (g Group) apply(fd int) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return
	}
	_ = unix.Fchownat(fd, "", -1, int(g.ID), unix.AT_EMPTY_PATH)
	// A symbolic link has no mode.
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

// matches reports whether the root has the desired group and mode.
func (g Group) matches(dir string) bool {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false
	}
	mask := g.mask(true)
	return int64(st.Gid) == g.ID && st.Mode&mask == mask
}
