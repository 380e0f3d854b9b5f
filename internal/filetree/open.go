package filetree

import (
	"errors"

	"golang.org/x/sys/unix"
)

// openTries bounds the retries of a path resolution that the kernel could not complete because
// directories were renamed meanwhile.
const openTries = 128

// OpenAt opens path, relative to the directory dir, with openat2(2) and the given RESOLVE_ flags.
func OpenAt(dir int, path string, flags int, resolve uint64) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: resolve}
	for try := 1; ; try++ {
		fd, err := retry(func() (int, error) { return unix.Openat2(dir, path, &how) })
		if !errors.Is(err, unix.EAGAIN) || try >= openTries {
			return fd, err
		}
	}
}

// retry repeats a call that was interrupted by a signal.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
