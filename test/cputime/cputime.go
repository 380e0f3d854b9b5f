// Package cputime holds calls in tests to an amount of CPU time. Other work on the machine does not prolong that,
// as it does the time of a clock.
package cputime

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// AtMost fails the test if f takes more CPU time than limit on the goroutine that calls it.
func AtMost(t testing.TB, limit time.Duration, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := thread(t)
	f()
	if took := thread(t) - began; took > limit {
		t.Errorf("took %v of CPU time, more than %v", took, limit)
	}
}

// thread returns the CPU time of the calling thread.
func thread(t testing.TB) time.Duration {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Nano())
}
