package filetree

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Entry is one name in a directory.
type Entry struct {
	Name string
	// Type is one of the DT_ constants, DT_UNKNOWN if the file system does not report it.
	Type byte
}

// parseEntry parses the first linux_dirent64 of a list and returns the offset of the next entry.
// A malformed entry ends the list.
func parseEntry(from []byte, at int64) (e Entry, next int64, rest []byte) {
	const offset, length, kind, name = 8, 16, 18, 19 // behind the inode
	if len(from) < name {
		return Entry{}, at, nil
	}
	size := int(binary.NativeEndian.Uint16(from[length:]))
	if size < name || size > len(from) {
		return Entry{}, at, nil
	}
	e = Entry{Name: unix.ByteSliceToString(from[name:size]), Type: from[kind]}
	return e, int64(binary.NativeEndian.Uint64(from[offset:])), from[size:]
}

// TypeOf is the type of an entry of the current directory. If the entry has none, it calls stat,
// and returns DT_UNKNOWN if that fails.
func (c *Cursor) TypeOf(e Entry) byte {
	if e.Type != unix.DT_UNKNOWN {
		return e.Type
	}
	var st unix.Stat_t
	if err := unix.Fstatat(c.FD(), e.Name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT); err != nil {
		return unix.DT_UNKNOWN
	}
	return byte(st.Mode & unix.S_IFMT >> 12) // as IFTODT of dirent.h
}
