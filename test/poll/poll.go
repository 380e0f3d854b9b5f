// Package poll waits in tests for conditions that have no notification.
package poll

import (
	"errors"
	"testing"
	"time"
)

const (
	// timeout is far longer than anything takes on a busy machine.
	timeout  = 30 * time.Second
	interval = time.Millisecond
)

// Until calls condition until it returns true. After 30 s the test fails with a message that
// contains what.
func Until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	Check(t, what, func() error {
		if !condition() {
			return errors.New("still false")
		}
		return nil
	})
}

// Check calls check until it returns no error. After 30 s the test fails with what and the last
// error.
func Check(t testing.TB, what string, check func() error) {
	t.Helper()
	began := time.Now()
	for {
		err := check()
		if err == nil {
			return
		}
		if waited := time.Since(began); waited > timeout {
			t.Fatalf("waited %v for %s: %v", waited.Round(time.Millisecond), what, err)
		}
		time.Sleep(interval)
	}
}
