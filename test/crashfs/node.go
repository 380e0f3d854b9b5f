package crashfs

import (
	"context"
	"path/filepath"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// node passes operations on an inode to the directory below, through FS.try.
type node struct {
	*fusefs.LoopbackNode
	fs *FS
}

// WrapChild makes every inode a node.
func (n *node) WrapChild(_ context.Context, ops fusefs.InodeEmbedder) fusefs.InodeEmbedder {
	return &node{ops.(*fusefs.LoopbackNode), n.fs}
}

func (n *node) id() uint64 {
	if n.EmbeddedInode().IsRoot() {
		return n.fs.root
	}
	return n.EmbeddedInode().StableAttr().Ino
}

func (n *node) path() string { return n.EmbeddedInode().Path(nil) }

// entry returns an operation on an entry of the directory.
func (n *node) entry(kind Kind, name string) Op {
	return Op{Kind: kind, Path: filepath.Join(n.path(), name), parent: n.id(), name: name}
}

// created completes the operation that made an inode.
func created(op *Op, i *fusefs.Inode, out *fuse.EntryOut) {
	op.inode, op.mode = i.StableAttr().Ino, out.Mode
}

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (i *fusefs.Inode, errno syscall.Errno) {
	errno = n.fs.try(n.entry(Mkdir, name), func(op *Op) syscall.Errno {
		if i, errno = n.LoopbackNode.Mkdir(ctx, name, mode, out); errno == 0 {
			created(op, i, out)
		}
		return errno
	})
	return i, errno
}

func (n *node) Mknod(ctx context.Context, name string, mode, rdev uint32, out *fuse.EntryOut) (i *fusefs.Inode, errno syscall.Errno) {
	errno = n.fs.try(n.entry(Create, name), func(op *Op) syscall.Errno {
		if i, errno = n.LoopbackNode.Mknod(ctx, name, mode, rdev, out); errno == 0 {
			created(op, i, out)
		}
		return errno
	})
	return i, errno
}

func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (i *fusefs.Inode, errno syscall.Errno) {
	errno = n.fs.try(n.entry(Symlink, name), func(op *Op) syscall.Errno {
		if i, errno = n.LoopbackNode.Symlink(ctx, target, name, out); errno == 0 {
			created(op, i, out)
			op.target = target
		}
		return errno
	})
	return i, errno
}

func (n *node) Link(ctx context.Context, target fusefs.InodeEmbedder, name string, out *fuse.EntryOut) (i *fusefs.Inode, errno syscall.Errno) {
	errno = n.fs.try(n.entry(Link, name), func(op *Op) syscall.Errno {
		if i, errno = n.LoopbackNode.Link(ctx, target, name, out); errno == 0 {
			created(op, i, out)
		}
		return errno
	})
	return i, errno
}

func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	return n.fs.try(n.entry(Unlink, name), func(*Op) syscall.Errno { return n.LoopbackNode.Unlink(ctx, name) })
}

func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	return n.fs.try(n.entry(Rmdir, name), func(*Op) syscall.Errno { return n.LoopbackNode.Rmdir(ctx, name) })
}

func (n *node) Rename(ctx context.Context, name string, parent fusefs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	to, ok := parent.(*node)
	if !ok || flags != 0 {
		return syscall.EINVAL // no test exchanges files
	}
	op := n.entry(Rename, name)
	op.To, op.newParent, op.newName = filepath.Join(to.path(), newName), to.id(), newName
	return n.fs.try(op, func(*Op) syscall.Errno { return n.LoopbackNode.Rename(ctx, name, parent, newName, 0) })
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (i *fusefs.Inode, fh fusefs.FileHandle, _ uint32, errno syscall.Errno) {
	errno = n.fs.try(n.entry(Create, name), func(op *Op) syscall.Errno {
		// O_EXCL: the kernel has looked the name up before.
		if i, fh, _, errno = n.LoopbackNode.Create(ctx, name, flags|syscall.O_EXCL, mode, out); errno == 0 {
			created(op, i, out)
			fh = &file{fh.(*fusefs.LoopbackFile), n.fs, op.inode, op.Path}
		}
		return errno
	})
	return i, fh, 0, errno
}

func (n *node) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	fh, _, errno := n.LoopbackNode.Open(ctx, flags&^syscall.O_TRUNC)
	if errno != 0 {
		return nil, 0, errno
	}
	opened := &file{fh.(*fusefs.LoopbackFile), n.fs, n.id(), n.path()}
	if flags&syscall.O_TRUNC == 0 {
		return opened, 0, 0
	}
	in, out := &fuse.SetAttrIn{}, &fuse.AttrOut{}
	in.Valid = fuse.FATTR_SIZE
	return opened, 0, n.Setattr(ctx, opened, in, out)
}

func (n *node) Setattr(ctx context.Context, f fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	do := func(*Op) syscall.Errno { return n.LoopbackNode.Setattr(ctx, f, in, out) }
	op := Op{Path: n.path(), inode: n.id()}
	if size, ok := in.GetSize(); ok {
		op.Kind, op.offset = Truncate, int64(size)
		return n.fs.try(op, do)
	}
	if mode, ok := in.GetMode(); ok {
		op.Kind, op.mode = Chmod, mode
		return n.fs.try(op, do)
	}
	return do(nil) // times and owners
}

func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	stream, _, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &directory{stream.(reader), n}, 0, 0
}
