package crashfs

import "fmt"

// Kind is the kind of an operation.
type Kind string

// The operations that change the file system, and those that wait for the disk.
const (
	Create   Kind = "create"
	Mkdir    Kind = "mkdir"
	Symlink  Kind = "symlink"
	Link     Kind = "link"
	Unlink   Kind = "unlink"
	Rmdir    Kind = "rmdir"
	Rename   Kind = "rename"
	Write    Kind = "write"
	Truncate Kind = "truncate"
	Chmod    Kind = "chmod"
	Fsync    Kind = "fsync"
	FsyncDir Kind = "fsyncdir"
)

// Op is one operation. Which fields are set depends on its kind.
type Op struct {
	Kind Kind
	// Path is relative to the root, for messages. To is the new path of a rename.
	Path, To string

	// inode is the file or directory that the operation changes, creates or syncs.
	inode uint64
	// parent has the entry name; newParent and newName are those of a rename.
	parent, newParent uint64
	name, newName     string
	target            string // of a symbolic link
	mode              uint32
	offset            int64 // of a write; the new size of a truncation
	data              []byte
}

func (o Op) String() string {
	switch o.Kind {
	case Rename:
		return fmt.Sprintf("rename %s to %s", o.Path, o.To)
	case Write:
		return fmt.Sprintf("write %s (%d bytes at %d)", o.Path, len(o.data), o.offset)
	}
	return fmt.Sprintf("%s %s", o.Kind, o.Path)
}
