package crashfs

import (
	"bytes"
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
)

// file is an open file.
type file struct {
	*fusefs.LoopbackFile
	fs    *FS
	inode uint64
	path  string // when it was opened
}

// PassthroughFd keeps the kernel from writing past this package.
func (f *file) PassthroughFd() (int, bool) { return 0, false }

func (f *file) Write(ctx context.Context, data []byte, offset int64) (n uint32, errno syscall.Errno) {
	op := Op{Kind: Write, Path: f.path, inode: f.inode, offset: offset}
	errno = f.fs.try(op, func(op *Op) syscall.Errno {
		n, errno = f.LoopbackFile.Write(ctx, data, offset)
		op.data = bytes.Clone(data[:n])
		return errno
	})
	return n, errno
}

// Fsync does not wait for the real disk, which no test cuts the power of.
func (f *file) Fsync(context.Context, uint32) syscall.Errno {
	return f.fs.try(Op{Kind: Fsync, Path: f.path, inode: f.inode}, func(*Op) syscall.Errno { return 0 })
}

// reader lists a directory.
type reader interface {
	fusefs.FileReaddirenter
	fusefs.FileSeekdirer
	fusefs.FileReleasedirer
}

// directory is an open directory.
type directory struct {
	reader
	node *node
}

// Fsyncdir does not wait for the real disk.
func (d *directory) Fsyncdir(context.Context, uint32) syscall.Errno {
	op := Op{Kind: FsyncDir, Path: d.node.path(), inode: d.node.id()}
	return d.node.fs.try(op, func(*Op) syscall.Errno { return 0 })
}
