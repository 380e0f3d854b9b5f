// Package mounts is the only package that mounts and unmounts. It uses system calls: to fork and
// exec mount(8) costs more than everything else that a volume needs.
package mounts

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Kernel mounts with system calls. The zero value is ready to use, from any goroutine.
type Kernel struct {
	noswapRefused atomic.Bool
}

// Tmpfs mounts a tmpfs at dir with at most size bytes (0: the kernel's default). It holds Secrets, so
// it is mounted with noswap if the kernel supports that (Linux 6.4).
func (k *Kernel) Tmpfs(dir string, size int64) error {
	var options []string
	if size > 0 {
		options = append(options, "size="+strconv.FormatInt(size, 10))
	}
	if !k.noswapRefused.Load() {
		err := unix.Mount("tmpfs", dir, "tmpfs", 0, strings.Join(append(options, "noswap"), ","))
		if !errors.Is(err, unix.EINVAL) {
			return wrap("mount tmpfs at", dir, err)
		}
	}
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, strings.Join(options, ","))
	if err == nil {
		// Only now it is certain that noswap was the rejected option.
		k.noswapRefused.Store(true)
	}
	return wrap("mount tmpfs at", dir, err)
}

// HugePages mounts huge pages of the given size (such as 2Mi) at dir.
func (k *Kernel) HugePages(dir, pageSize string) error {
	return wrap("mount huge pages at", dir, unix.Mount("nodev", dir, "hugetlbfs", 0, "pagesize="+pageSize))
}

// Bind mounts the open file at target. It uses the file descriptor instead of a path, so that the
// source cannot be replaced meanwhile.
func (k *Kernel) Bind(fd int, target string) error {
	return wrap("bind mount at", target, unix.Mount(fmt.Sprintf("/proc/self/fd/%d", fd), target, "", unix.MS_BIND, ""))
}

// Unmount unmounts the topmost mount at path. It is not an error if there is none.
func (k *Kernel) Unmount(path string) error {
	err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return wrap("unmount", path, err)
}

// ForceUnmount unmounts a file system whose server does not answer. Pending I/O fails.
func (k *Kernel) ForceUnmount(path string) error {
	err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW|unix.MNT_FORCE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return wrap("force unmount of", path, err)
}

// Mounted reports whether path, which may not exist, is a mount point. It calls statx on the path
// only, which also detects a bind mount within one file system.
func (k *Kernel) Mounted(path string) (bool, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE, &st)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ESTALE) {
		return true, nil // a mount point whose server is gone
	}
	if err != nil {
		return false, wrap("stat", path, err)
	}
	return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}

// FileSystem returns the magic number of the file system at path.
func (k *Kernel) FileSystem(path string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, wrap("stat file system of", path, err)
	}
	return int64(st.Type), nil
}

func wrap(what, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, path, err)
}
