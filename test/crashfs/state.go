package crashfs

import (
	"bytes"
	"maps"
)

// Loss is what a power loss does to changes that were not synced.
type Loss string

const (
	// Everything that was not synced is lost: data, and directory entries.
	Everything Loss = "everything unsynced is lost"
	// Data that was not synced is lost. The journal has all changes of directories and sizes of files
	// are those of the last sync: the result of a rename before an fsync is an empty file.
	Data Loss = "unsynced data is lost"
	// Half: as Data, but the first half of the unsynced data has reached the disk.
	Half Loss = "half of the unsynced data is lost"
	// Nothing is lost, as in a crash of the process.
	Nothing Loss = "nothing is lost"
)

// Losses are all of them.
var Losses = []Loss{Everything, Data, Half, Nothing}

// inode is a file, directory or symbolic link: as it is now, and as it was when it was last synced.
type inode struct {
	mode   uint32 // with the file type
	target string

	data, syncedData       []byte
	entries, syncedEntries map[string]*inode // nil unless it is a directory
}

// state is a file system.
type state struct {
	root   *inode
	inodes map[uint64]*inode
}

func newDirectory(mode uint32) *inode {
	return &inode{mode: mode, entries: map[string]*inode{}, syncedEntries: map[string]*inode{}}
}

// replay returns the state after the operations on an empty file system.
func replay(root uint64, ops []Op) *state {
	s := &state{root: newDirectory(0o755)}
	s.inodes = map[uint64]*inode{root: s.root}
	for _, op := range ops {
		s.apply(op)
	}
	return s
}

func (s *state) apply(op Op) {
	i, parent := s.inodes[op.inode], s.inodes[op.parent]
	switch op.Kind {
	case Create, Symlink:
		// The kernel may use the number of a deleted file again.
		s.inodes[op.inode] = &inode{mode: op.mode, target: op.target}
		parent.entries[op.name] = s.inodes[op.inode]
	case Mkdir:
		s.inodes[op.inode] = newDirectory(op.mode)
		parent.entries[op.name] = s.inodes[op.inode]
	case Link:
		parent.entries[op.name] = i
	case Unlink, Rmdir:
		delete(parent.entries, op.name)
	case Rename:
		moved := parent.entries[op.name]
		delete(parent.entries, op.name)
		s.inodes[op.newParent].entries[op.newName] = moved
	case Write:
		i.write(op.data, op.offset)
	case Truncate:
		i.data = append(bytes.Clone(i.data), make([]byte, max(0, int(op.offset)-len(i.data)))...)[:op.offset]
	case Chmod:
		i.mode = i.mode&^0o7777 | op.mode&0o7777
	case Fsync:
		i.syncedData = bytes.Clone(i.data)
	case FsyncDir:
		i.syncedEntries = maps.Clone(i.entries)
	}
}

// write changes data in place: what was synced is a copy.
func (i *inode) write(data []byte, offset int64) {
	i.data = append(i.data, make([]byte, max(0, int(offset)+len(data)-len(i.data)))...)
	copy(i.data[offset:], data)
}

// after returns what the disk has of a file's data.
func (i *inode) after(loss Loss) []byte {
	switch loss {
	case Nothing:
		return i.data
	case Half:
		return half(i.syncedData, i.data)
	}
	return i.syncedData
}

// half returns the data of which the first half of what was written since the sync has reached the disk.
func half(synced, now []byte) []byte {
	if bytes.Equal(synced, now) {
		return now
	}
	if len(now) > len(synced) && bytes.HasPrefix(now, synced) {
		return now[:len(synced)+(len(now)-len(synced))/2]
	}
	n := len(now) / 2
	return append(bytes.Clone(now[:n]), synced[min(n, len(synced)):]...)
}

func (i *inode) entriesAfter(loss Loss) map[string]*inode {
	if loss == Everything {
		return i.syncedEntries
	}
	return i.entries
}
