package restoration

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"

	"swiftlet/test/crashfs"
	"swiftlet/test/trust/tally"
)

// onDisk mounts a disk with a node, all of which is on the disk.
func onDisk(t *testing.T) *crashfs.FS {
	t.Helper()
	disk := crashfs.Mount(t)
	d := dirsOf(disk.Dir)
	if err := errors.Join(write(d.PKI, d.data(storeName), "previous"), syncTree(disk.Dir)); err != nil {
		t.Fatal(err)
	}
	return disk
}

// TestPowerLoss cuts the power at every operation of a restore. Keys and store are of one time, and those of the
// backup once the restore has returned.
func TestPowerLoss(t *testing.T) {
	counts := tally.New(t, "power-loss")
	for n := 1; ; n++ {
		disk := onDisk(t)
		disk.CutAt(disk.Tried() + n)
		done := restoreUntil(disk.Dir, 0) == nil
		for _, loss := range crashfs.Losses {
			dir := t.TempDir()
			if err := disk.Build(dir, loss); err != nil {
				t.Fatal(err)
			}
			counts.Fault(t.Run(fmt.Sprintf("at operation %d, %s", n, loss), func(t *testing.T) {
				if got := check(t, dir); got != "restored" && (done || got != "previous") {
					t.Errorf("the node is %s after a restore that returned %t", got, done)
				}
			}))
		}
		if !disk.IsOff() {
			if n < 30 {
				t.Fatalf("there were only %d operations", n-1)
			}
			return
		}
	}
}

// TestDiskErrors fails every operation of a restore. The next program finds keys and store of one time, and the next
// restore succeeds.
func TestDiskErrors(t *testing.T) {
	counts := tally.New(t, "disk-errors")
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
		for n := 1; ; n++ {
			disk := onDisk(t)
			failAt := disk.Tried() + n
			var failed atomic.Bool
			disk.Fail(func(now int, _ crashfs.Op) syscall.Errno {
				if now != failAt {
					return 0
				}
				failed.Store(true)
				return errno
			})
			err := restoreUntil(disk.Dir, 0)
			if !failed.Load() {
				if n < 30 {
					t.Fatalf("there were only %d operations", n-1)
				}
				break
			}
			counts.Fault(t.Run(fmt.Sprintf("%v at operation %d", errno, n), func(t *testing.T) {
				if err != nil && !errors.Is(err, errno) {
					t.Errorf("the error is %v", err)
				}
				check(t, disk.Dir)
				if err := restoreUntil(disk.Dir, 0); err != nil {
					t.Errorf("the next restore fails: %v", err)
				}
				if got := check(t, disk.Dir); got != "restored" {
					t.Errorf("after the next restore the node is %s", got)
				}
			}))
		}
	}
}
