package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"swiftlet/test/crashfs"
	"swiftlet/test/trust/tally"
)

// TestPowerLoss cuts the power at every operation of two writes. Read returns an old or the new state, never
// an error about the content, and what Write has returned for is not lost.
func TestPowerLoss(t *testing.T) {
	counts := tally.New(t, "power-loss")
	for n := 1; ; n++ {
		disk := crashfs.Mount(t)
		disk.CutAt(n)
		durable := []int{0}
		for i := range 2 {
			if Write(filepath.Join(disk.Dir, "state"), state{N: i + 1}) == nil {
				durable = []int{i + 1}
				continue
			}
			durable = append(durable, i+1)
			break
		}
		for _, loss := range crashfs.Losses {
			dir := t.TempDir()
			if err := disk.Build(dir, loss); err != nil {
				t.Fatal(err)
			}
			var got state
			err := Read(filepath.Join(dir, "state"), &got)
			survived := (err == nil || errors.Is(err, ErrMissing)) && slices.Contains(durable, got.N)
			if counts.Fault(survived); !survived {
				t.Errorf("cut at operation %d, %s: state %d, %v, want one of %v", n, loss, got.N, err, durable)
			}
		}
		if !disk.IsOff() {
			if n < 10 {
				t.Fatalf("there were only %d operations", n-1)
			}
			return
		}
	}
}

// TestDiskErrors fails every operation of a write. The old state stays, the error names the file, and the
// next write succeeds.
func TestDiskErrors(t *testing.T) {
	counts := tally.New(t, "disk-errors")
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
		for n := 1; ; n++ {
			disk := crashfs.Mount(t)
			path := filepath.Join(disk.Dir, "state")
			if err := Write(path, state{N: 1}); err != nil {
				t.Fatal(err)
			}
			failAt := disk.Tried() + n
			disk.Fail(func(now int, _ crashfs.Op) syscall.Errno {
				if now == failAt {
					return errno
				}
				return 0
			})
			failure := Write(path, state{N: 2})
			if failure == nil {
				if n <= 4 {
					t.Fatalf("there were only %d operations", n-1)
				}
				break
			}
			counts.Fault(t.Run(fmt.Sprintf("%v at operation %d", errno, n), func(t *testing.T) { afterDiskError(t, disk.Dir, failure, errno) }))
		}
	}
}

// afterDiskError checks the error and the file of a write that failed.
func afterDiskError(t *testing.T, dir string, failure error, errno syscall.Errno) {
	path := filepath.Join(dir, "state")
	if !errors.Is(failure, errno) || !strings.Contains(failure.Error(), path) {
		t.Errorf("the error is %v", failure)
	}
	var got state
	if err := Read(path, &got); err != nil || got.N == 0 {
		t.Errorf("read %v, %v", got, err)
	}
	if err := Write(path, state{N: 3}); err != nil {
		t.Errorf("the next write fails: %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("files left: %v", entries)
	}
}
