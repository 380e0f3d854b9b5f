package mounts

import (
	"os"

	"golang.org/x/sys/unix"
)

// WarnIfSwappable warns if the host has swap and the kernel cannot keep a tmpfs out of it. It tries
// that below dir.
func WarnIfSwappable(swap bool, dir string, warn func(reason, message string)) {
	warnIfSwappable(swap, func() bool { return noswapSupported(dir) }, warn)
}

func warnIfSwappable(swap bool, noswap func() bool, warn func(reason, message string)) {
	if swap && !noswap() {
		warn("PossibleMemoryBackedVolumesOnDisk", "The tmpfs noswap option is not supported. Memory-backed volumes (e.g. secrets, emptyDirs, etc.) "+
			"might be swapped to disk and should no longer be considered secure.")
	}
}

// noswapSupported reports whether the kernel accepts the option noswap: Linux 6.4 and later does,
// outside of user namespaces.
func noswapSupported(dir string) bool {
	point, err := os.MkdirTemp(dir, "tmpfs-noswap-test-")
	if err != nil {
		return false
	}
	defer os.Remove(point)
	if unix.Mount("tmpfs", point, "tmpfs", 0, "noswap") != nil {
		return false
	}
	_ = unix.Unmount(point, unix.MNT_DETACH)
	return true
}
