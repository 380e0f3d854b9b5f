// Package mounts is the one place that mounts and unmounts. It calls the kernel directly:
// a fork and exec of mount(8) costs more than all else a volume needs.
package mounts

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Kernel mounts by system call. Its zero value is ready; it may be used by many at once.
type Kernel struct {
	noswapRefused atomic.Bool
}

// Tmpfs mounts memory at dir, at most size bytes (0: the kernel's default). Secrets live
// there, so it is kept out of swap where the kernel can do that (Linux 6.4).
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
		// Only now is it certain that the refused option was this one.
		k.noswapRefused.Store(true)
	}
	return wrap("mount tmpfs at", dir, err)
}

// HugePages mounts huge pages of the given size (such as 2Mi) at dir.
func (k *Kernel) HugePages(dir, pageSize string) error {
	return wrap("mount huge pages at", dir, unix.Mount("nodev", dir, "hugetlbfs", 0, "pagesize="+pageSize))
}

// Bind makes what the open file refers to visible at target. Going through the descriptor,
// not a path, leaves no moment in which the source could be exchanged.
func (k *Kernel) Bind(fd int, target string) error {
	return wrap("bind mount at", target, unix.Mount(fmt.Sprintf("/proc/self/fd/%d", fd), target, "", unix.MS_BIND, ""))
}

// Unmount takes away the topmost mount at path; it is no error if there is none.
func (k *Kernel) Unmount(path string) error {
	err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return wrap("unmount", path, err)
}

// ForceUnmount takes away a mount whose server does not answer: what waits for it fails.
func (k *Kernel) ForceUnmount(path string) error {
	err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW|unix.MNT_FORCE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return wrap("force unmount of", path, err)
}

// Mounted reports whether something is mounted at path, which may not exist. It asks the
// kernel about this one path; a bind mount within one file system is seen, too.
func (k *Kernel) Mounted(path string) (bool, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE, &st)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ESTALE) {
		return true, nil // a mount whose server is gone
	}
	if err != nil {
		return false, wrap("look at", path, err)
	}
	return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}

// FileSystem reports the magic number of the file system at path.
func (k *Kernel) FileSystem(path string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, wrap("look at file system of", path, err)
	}
	return int64(st.Type), nil
}

func wrap(what, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, path, err)
}
