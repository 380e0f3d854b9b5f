package path

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"swiftlet/test/crashfs"
	"swiftlet/test/trust/tally"
)

// diskFault is how a disk fails.
type diskFault struct {
	name  string
	errno syscall.Errno
	lasts time.Duration // zero: one operation fails
}

var diskFaults = []diskFault{
	{"one write finds no space", syscall.ENOSPC, 0},
	{"one operation fails", syscall.EIO, 0},
	{"no space for a minute", syscall.ENOSPC, time.Minute},
	{"all operations fail for a minute", syscall.EIO, time.Minute},
}

// affects reports whether an operation fails: without space, files can still be removed and synced.
func (f diskFault) affects(op crashfs.Op) bool {
	return f.errno != syscall.ENOSPC ||
		slices.Contains([]crashfs.Kind{crashfs.Create, crashfs.Mkdir, crashfs.Symlink, crashfs.Link, crashfs.Write, crashfs.Rename}, op.Kind)
}

// TestDiskErrorsAtEveryWrite fails each operation that changes the agent's root directory in the life of two
// pods. The agent keeps running, no pod is restarted, the log names the file, and everything is as it
// should be once the disk works again.
func TestDiskErrorsAtEveryWrite(t *testing.T) {
	counts := tally.New(t, "disk-errors")
	step := 1
	if testing.Short() {
		step = 31
	}
	for n := 1; ; n += step {
		failed := true
		for i, fault := range diskFaults {
			if testing.Short() && i != n/step%len(diskFaults) {
				continue
			}
			ok := t.Run(fmt.Sprintf("at operation %d, %s", n, fault.name), func(t *testing.T) {
				failed = failDisk(t, n, fault, counts)
			})
			if failed {
				counts.Fault(ok)
			}
		}
		if failed && n < 10000 { // it ends, too, if -run selects one operation
			continue
		}
		if n < 100 && !t.Failed() {
			t.Fatalf("there were only %d operations", n-1)
		}
		return
	}
}

// failDisk runs the life of the pods with a fault from operation n on. It returns false if there were fewer
// operations.
func failDisk(t *testing.T, n int, fault diskFault, counts *tally.Tally) bool {
	disk := crashfs.Mount(t)
	var log safeBuffer
	var failed, over atomic.Bool
	var first atomic.Value
	prepare := func(w *testNode) {
		w.logTo = &log
		w.exits["init"] = 0
		w.runtime.Publish("app:2", 1)
	}
	var events []string
	onTestNodeIn(t, disk.Dir, prepare, func(w *testNode) {
		from := disk.Tried() + n
		disk.Fail(func(now int, op crashfs.Op) syscall.Errno {
			if now < from || over.Load() || !fault.affects(op) {
				return 0
			}
			if failed.CompareAndSwap(false, true) {
				first.Store(op.String())
			}
			over.Store(fault.lasts == 0)
			return fault.errno
		})
		pass := func() {
			if failed.Load() && !over.Load() {
				w.pass(fault.lasts)
				over.Store(true)
			}
		}
		restarts := w.liveWithFaults(pass)
		if restarts != 0 {
			counts.Restarts(restarts)
			t.Errorf("%d restarts without a cause", restarts)
		}
		w.endOfLife(pass)
		events = w.events.take()
		// A file that could not be removed is removed by the next start.
		w.stop()
		w.start()
		w.pass(time.Minute)
		counts.Leaks(w.leftFiles(disk.Dir))
	})
	checkLog(t, log.String())
	if failed.Load() && fault.lasts > 0 && !strings.Contains(log.String()+strings.Join(events, "\n"), disk.Dir) {
		t.Errorf("neither log nor events name the file")
	}
	if t.Failed() {
		t.Logf("the first operation that failed: %v", first.Load())
	}
	return failed.Load()
}

// liveWithFaults starts the pods and restarts a container. It calls pass while time passes, and returns the
// number of restarts without a cause.
func (w *testNode) liveWithFaults(pass func()) (restarts int) {
	exited := 0
	for _, act := range []func() error{
		func() error { return w.store.apply([]byte(writingPod)) },
		func() error { return w.store.setStatic([]byte(writingStaticPod)) },
		func() error {
			if c := w.container("main"); c != nil {
				w.runtime.Exit(c.Id, 1)
				exited++
			}
			return nil
		},
	} {
		if err := act(); err != nil {
			w.t.Fatal(err)
		}
		for range 15 {
			w.pass(2 * time.Second)
			pass()
		}
	}
	w.pass(6 * time.Minute) // longer than the longest back-off
	if lost := w.lostPods(); lost > 0 {
		return 0
	}
	for _, p := range append(w.store.list(), w.staticPods()...) {
		for _, s := range p.Status.ContainerStatuses {
			restarts += int(s.RestartCount)
		}
	}
	return restarts - exited
}
