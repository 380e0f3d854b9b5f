// Package poll waits in tests for what happens in its own time and sends no notification.
package poll

import (
	"errors"
	"testing"
	"time"
)

const (
	// patience is far above what anything takes on a busy machine.
	patience = 30 * time.Second
	interval = time.Millisecond
)

// Until calls is until it returns true. If it does not in time, the test fails: what says
// what was waited for.
func Until(t testing.TB, what string, is func() bool) {
	t.Helper()
	Check(t, what, func() error {
		if !is() {
			return errors.New("still false")
		}
		return nil
	})
}

// Check calls check until it returns no error. If it does not in time, the test fails with
// the last error.
func Check(t testing.TB, what string, check func() error) {
	t.Helper()
	began := time.Now()
	for {
		err := check()
		if err == nil {
			return
		}
		if waited := time.Since(began); waited > patience {
			t.Fatalf("waited %v for %s: %v", waited.Round(time.Millisecond), what, err)
		}
		time.Sleep(interval)
	}
}
