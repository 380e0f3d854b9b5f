package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// nobody is the user and group without privileges.
const nobody = 65534

// The signal at the end of the parent belongs to a thread, which must not end.
func init() { runtime.LockOSThread() }

// dropPrivileges makes root nobody. It is called on the first thread. The kernel then forgets that the process is to end
// with its parent, so that is set again.
func dropPrivileges() error {
	if os.Geteuid() != 0 {
		return nil
	}
	parent := os.Getppid()
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
		return fmt.Errorf("drop privileges: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("drop privileges: %w", err)
	}
	if os.Getppid() != parent {
		return errors.New("drop privileges: the parent has ended")
	}
	return nil
}
