package poll

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// recorder is a testing.TB that records its failure.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestUntilReturnsOnceTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		Until(t, "three calls", func() bool { calls++; return calls == 3 })
		if calls != 3 {
			t.Errorf("%d calls, want 3", calls)
		}
	})
}

func TestCheckFailsWithLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			Check(r, "the pod to run", func() error { return errors.New("it is Pending") })
		}()
		<-done
		if !strings.HasPrefix(r.failure, "waited 30") || !strings.HasSuffix(r.failure, "for the pod to run: it is Pending") {
			t.Errorf("failed with %q", r.failure)
		}
	})
}
