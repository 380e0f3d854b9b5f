package filetree

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Entry is one name in a directory.
type Entry struct {
	Name string
	// Type is one of the DT_ constants, DT_UNKNOWN from file systems that do not tell.
	Type byte
}

// parseEntry takes the first of the kernel's linux_dirent64 and returns the offset of the
// entry after it. What is malformed ends the list.
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

// TypeOf is the type of an entry of the current directory. It asks the file system where the
// entry does not tell, and is DT_UNKNOWN if there is no answer.
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
