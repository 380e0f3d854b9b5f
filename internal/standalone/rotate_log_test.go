package standalone

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"swiftlet/test/poll"
)

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}

// testLimit replaces maxLogSize in tests.
const testLimit = 100 << 10

// TestRotatedLog: the last records are in the log and the older one, neither of which exceeds the limit.
func TestRotatedLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	l.max = testLimit
	line := func(i int) string { return fmt.Sprintf("%08d%s\n", i, strings.Repeat("x", 1015)) }
	for i := range 250 {
		if i == 10 { // a restart
			l.Close()
			if l, err = OpenLog(path); err != nil {
				t.Fatal(err)
			}
			l.max = testLimit
		}
		if _, err := l.Write([]byte(line(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	now, nowErr := os.ReadFile(path)
	older, olderErr := os.ReadFile(path + ".1")
	if nowErr != nil || olderErr != nil || len(now) != 50<<10 || len(older) != testLimit {
		t.Fatalf("%d bytes and %d older, %v %v", len(now), len(older), nowErr, olderErr)
	}
	if !bytes.HasPrefix(older, []byte(line(100))) || !bytes.HasSuffix(now, []byte(line(249))) {
		t.Errorf("the logs begin with %.8s and end with %.8s", older, now[len(now)-1024:])
	}
}

// TestLimitLog: another process appends to its log; it is copied and truncated, and nothing wakes up while
// that process does not write.
func TestLimitLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := openAppend(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	clk := testclock.NewFakeClock(time.Unix(0, 0))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); limitLog(ctx, path, testLimit, clk, slog.New(slog.DiscardHandler)) }()
	write := func(b byte, size int) {
		t.Helper()
		if _, err := f.Write(bytes.Repeat([]byte{b}, size)); err != nil {
			t.Fatal(err)
		}
	}
	// until advances the clock whenever a check waits for it.
	until := func(what string, done func() bool) {
		t.Helper()
		poll.Until(t, what, func() bool {
			if clk.HasWaiters() {
				clk.Step(logCheckPeriod)
			}
			return done()
		})
	}
	time.Sleep(20 * time.Millisecond) // without a write nothing must happen
	if clk.HasWaiters() {
		t.Error("woke up without a write")
	}
	write('a', testLimit-5)
	poll.Until(t, "the write to be noticed", clk.HasWaiters)
	if size, older := sizeOf(path), sizeOf(path+".1"); size != testLimit-5 || older != -1 {
		t.Errorf("a log that is not full has %d bytes, and an older one %d", size, older)
	}
	for range 3 {
		write('b', testLimit)
		until("the rotation", func() bool { return sizeOf(path) == 0 })
		if older := sizeOf(path + ".1"); older != testLimit {
			t.Errorf("the older log has %d bytes", older)
		}
		write('c', 5)
	}
	if size := sizeOf(path); size != 5 {
		t.Errorf("the log has %d bytes after a rotation", size)
	}
	cancel()
	<-ended
}

// TestLimitLogOfEarlierRun: a log that grew without limit is cut to its end at once.
func TestLimitLogOfEarlierRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, append(make([]byte, 5*testLimit), "the end"...), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		limitLog(ctx, path, testLimit, clock.RealClock{}, slog.New(slog.DiscardHandler))
	}()
	poll.Until(t, "the rotation", func() bool { return sizeOf(path) == 0 })
	cancel()
	<-ended
	if older, err := os.ReadFile(path + ".1"); err != nil || len(older) != testLimit || !bytes.HasSuffix(older, []byte("the end")) {
		t.Errorf("%d bytes, %v", len(older), err)
	}
}

// TestLimitLogWithoutWatch: pods may use up the inotify instances of root. The log is limited nevertheless.
func TestLimitLogWithoutWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "log") // cannot be watched
	clk := testclock.NewFakeClock(time.Unix(0, 0))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); limitLog(ctx, path, testLimit, clk, slog.New(slog.DiscardHandler)) }()
	poll.Until(t, "the next check", clk.HasWaiters)
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, make([]byte, 2*testLimit), 0o600)); err != nil {
		t.Fatal(err)
	}
	clk.Step(logCheckPeriod)
	poll.Until(t, "the rotation", func() bool { return sizeOf(path) == 0 })
	cancel()
	<-ended
}
