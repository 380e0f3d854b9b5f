package cputime

import (
	"testing"
	"time"
)

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestAtMost(t *testing.T) {
	sleeps, works := &recorder{TB: t}, &recorder{TB: t}
	AtMost(sleeps, 10*time.Millisecond, func() { time.Sleep(20 * time.Millisecond) })
	AtMost(works, 10*time.Millisecond, func() {
		for began := thread(t); thread(t)-began < 20*time.Millisecond; {
		}
	})
	if sleeps.failed || !works.failed {
		t.Errorf("sleeping fails: %v, working fails: %v; want only the latter", sleeps.failed, works.failed)
	}
}
