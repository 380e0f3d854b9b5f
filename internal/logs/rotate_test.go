package logs

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/test/cputime"
	"swiftlet/test/poll"
)

// fakeRuntime writes a log, and opens a new file on reopen.
type fakeRuntime struct {
	t         *testing.T
	mu        sync.Mutex
	path      string
	file      *os.File
	reopenErr error
	opened    int
}

func newFakeRuntime(t *testing.T) *fakeRuntime {
	t.Helper()
	w := &fakeRuntime{t: t, path: filepath.Join(t.TempDir(), "0.log")}
	if err := w.reopen(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.file.Close() })
	return w
}

func (w *fakeRuntime) reopen(context.Context, string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reopenErr != nil {
		return w.reopenErr
	}
	if w.file != nil {
		_ = w.file.Close()
	}
	var err error
	w.file, err = os.OpenFile(w.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	w.opened++
	return err
}

func (w *fakeRuntime) write(text string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.file.WriteString(text); err != nil {
		w.t.Fatal(err)
	}
}

func (w *fakeRuntime) rotator(cfg RotateConfig, clock clock.WithDelayedExecution) *Rotator {
	w.t.Helper()
	r, err := NewRotator(cfg, RotateDeps{
		Containers: slices.Values([]Container{{"c", w.path}}),
		Reopen:     w.reopen, Clock: clock, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// contents reads the log directory, with compressed files decompressed.
func (w *fakeRuntime) contents() map[string]string {
	w.t.Helper()
	entries, err := os.ReadDir(filepath.Dir(w.path))
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(filepath.Dir(w.path), e.Name()))
		if err != nil {
			w.t.Fatal(err)
		}
		var from io.Reader = f
		if strings.HasSuffix(e.Name(), ".gz") {
			if from, err = gzip.NewReader(f); err != nil {
				w.t.Fatal(err)
			}
		}
		text, err := io.ReadAll(from)
		if err != nil {
			w.t.Fatal(err)
		}
		all[e.Name()] = string(text)
		f.Close()
	}
	return all
}

func TestRotate(t *testing.T) {
	w, clock := newFakeRuntime(t), clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC))
	r := w.rotator(RotateConfig{MaxFiles: 4, Workers: 1, Interval: time.Second}, clock)
	f := r.newLogFile(Container{"c", w.path})
	for i, step := range []struct {
		pass time.Duration
		want map[string]string
	}{
		{0, map[string]string{"0.log": "", "0.log.20260102-030405": "a"}},
		{0, map[string]string{"0.log": "", "0.log.20260102-030405.gz": "a", "0.log.20260102-030405.000000678": "b"}},
		{time.Minute, map[string]string{"0.log": "", "0.log.20260102-030405.gz": "a", "0.log.20260102-030405.000000678.gz": "b", "0.log.20260102-030505": "c"}},
		{time.Minute, map[string]string{"0.log": "", "0.log.20260102-030405.000000678.gz": "b", "0.log.20260102-030505.gz": "c", "0.log.20260102-030605": "d"}},
	} {
		clock.Step(step.pass)
		w.write(string(rune('a' + i)))
		// Left by a crash.
		leave := filepath.Join(filepath.Dir(w.path), "0.log.20250101-000000.tmp")
		if err := os.WriteFile(leave, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.rotate(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		r.compress(t.Context(), f)
		if diff := cmp.Diff(step.want, w.contents()); diff != "" {
			t.Errorf("rotation %d: -want +got\n%s", i, diff)
		}
	}
	w.write("e")
	w.reopenErr = errors.New("no")
	before := w.contents()
	if err := r.rotate(t.Context(), f); !errors.Is(err, w.reopenErr) {
		t.Errorf("reopen failed: %v", err)
	}
	delete(before, "0.log.20260102-030405.000000678.gz")
	if diff := cmp.Diff(before, w.contents()); diff != "" {
		t.Errorf("reopen failed: -want +got\n%s", diff)
	}
}

func TestCheckInterval(t *testing.T) {
	w := newFakeRuntime(t)
	r := w.rotator(RotateConfig{MaxFiles: 2, Workers: 1, Interval: 10 * time.Second}, clock.RealClock{})
	for _, test := range []struct {
		room, grown  int64
		passed, want time.Duration
	}{
		{10 << 20, 100 << 20, time.Second, minInterval},    // full in 100 ms
		{10 << 20, 10 << 20, time.Second, time.Second / 2}, // full in a second
		{10 << 20, 1, time.Second, maxInterval},
		{10 << 20, 0, time.Second, maxInterval},
		{1, 100 << 20, time.Second, minInterval},
	} {
		if got := r.checkInterval(test.room, test.grown, test.passed); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// A new log that grows slowly is checked often at first.
func TestNewLogIsCheckedOften(t *testing.T) {
	w, clock := newFakeRuntime(t), clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	r := w.rotator(RotateConfig{MaxSize: 1 << 20, MaxFiles: 2, Workers: 1, Interval: time.Hour}, clock)
	f := r.newLogFile(Container{"c", w.path})
	var intervals []time.Duration
	for range 7 {
		w.write("a")
		now := clock.Now()
		r.check(t.Context(), f, now)
		intervals = append(intervals, f.next.Sub(now))
		clock.SetTime(f.next)
	}
	want := []time.Duration{minInterval, minInterval, 2 * minInterval, 4 * minInterval, 8 * minInterval, 16 * minInterval, maxInterval}
	if diff := cmp.Diff(want, intervals); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A failed rotation is retried with a growing delay up to Interval.
func TestFailedRotationIsRetried(t *testing.T) {
	w, clock := newFakeRuntime(t), clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	r := w.rotator(RotateConfig{MaxFiles: 2, Workers: 1, Interval: 10 * time.Second}, clock)
	f := r.newLogFile(Container{"c", w.path})
	reopenErr := errors.New("no")
	for i, step := range []struct {
		err  error
		want time.Duration
	}{
		{reopenErr, time.Second}, {reopenErr, 2 * time.Second}, {reopenErr, 4 * time.Second}, {reopenErr, 8 * time.Second},
		{reopenErr, 10 * time.Second}, {reopenErr, 10 * time.Second}, {nil, minInterval}, {reopenErr, time.Second},
	} {
		f.rotating, f.err = true, step.err
		r.rotationDone(f)
		if got := f.next.Sub(clock.Now()); got != step.want || f.rotating {
			t.Errorf("rotation %d: next check in %v, want %v", i, got, step.want)
		}
	}
	r.cfg.Interval = 300 * time.Millisecond
	f = r.newLogFile(Container{"c", w.path})
	f.err = reopenErr
	if r.rotationDone(f); f.next.Sub(clock.Now()) != r.cfg.Interval {
		t.Errorf("next check in %v, later than the interval", f.next.Sub(clock.Now()))
	}
}

// A log that does not grow is watched with inotify; a growing one is rotated even if Interval is
// long.
func TestGrowthIsDetected(t *testing.T) {
	w := newFakeRuntime(t)
	r := w.rotator(RotateConfig{MaxSize: 10, MaxFiles: 2, Workers: 1, Interval: time.Hour}, clock.RealClock{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	watched := func() bool {
		r.growth.mu.Lock()
		defer r.growth.mu.Unlock()
		return len(r.growth.watches) == 1
	}
	poll.Until(t, "the log to be watched", watched)
	w.write("small")
	poll.Until(t, "the log to be watched again", watched)
	w.write("a lot more")
	poll.Until(t, "the log to be rotated", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.opened == 2 })
	poll.Until(t, "the new log to be watched", watched)
	r.deps.Containers = slices.Values[[]Container](nil)
	r.Notify()
	poll.Until(t, "the watch to end", func() bool { return !watched() })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A pod that mounts its log directory can replace it by a link, such as to the directory of another pod, whose log
// would be renamed and in the end deleted.
func TestRotatorFollowsNoLinkToDirectory(t *testing.T) {
	w := newFakeRuntime(t)
	r := w.rotator(RotateConfig{MaxSize: 10, MaxFiles: 2, Workers: 1, Interval: time.Hour}, clock.RealClock{})
	if err := r.growth.open(); err != nil {
		t.Fatal(err)
	}
	defer r.growth.inotify.Close()
	own := filepath.Join(t.TempDir(), "own")
	if err := os.Symlink(filepath.Dir(w.path), own); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(own, "0.log")
	for _, old := range []string{"0.log.20250101-000000", "0.log.20250101-000001", "0.log.20250101-000002"} {
		if err := os.WriteFile(filepath.Join(own, old), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := w.contents()
	f := r.newLogFile(Container{"c", log})
	if r.check(t.Context(), f, time.Now()); f.next.IsZero() {
		t.Error("the other log is watched")
	}
	if err := r.rotate(t.Context(), f); err == nil {
		t.Error("rotated")
	}
	r.compress(t.Context(), f)
	if diff := cmp.Diff(before, w.contents()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A pod that mounts its log directory can create any number of files there. Rotations of other logs wait meanwhile.
func TestManyRotatedFiles(t *testing.T) {
	log := filepath.Join(t.TempDir(), "0.log")
	for i := range 80_000 {
		if err := os.Symlink("x", fmt.Sprintf("%s.%06d", log, i)); err != nil {
			t.Fatal(err)
		}
	}
	cputime.AtMost(t, 3*time.Second, func() {
		if err := removeLeftovers(log); err != nil {
			t.Error(err)
		}
	})
}

// A runtime that hangs with one container must not let the logs of others grow.
func TestHungReopenDelaysNoOtherLog(t *testing.T) {
	dir := t.TempDir()
	logs := []Container{{"hung", filepath.Join(dir, "hung.log")}, {"other", filepath.Join(dir, "other.log")}}
	for _, c := range logs {
		if err := os.WriteFile(c.Log, []byte("full"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hangs, reopened := make(chan struct{}), make(chan struct{})
	fake := clocktesting.NewFakeClock(time.Now())
	r, err := NewRotator(RotateConfig{MaxSize: 4, MaxFiles: 2, Workers: 1, Interval: time.Second}, RotateDeps{
		Containers: slices.Values([]Container(nil)),
		Reopen: func(ctx context.Context, id string) error {
			if id == "hung" {
				close(hangs)
				<-ctx.Done()
				return ctx.Err()
			}
			close(reopened)
			return nil
		},
		Clock: fake, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer r.jobs.Wait()
	defer cancel()
	r.startRotation(ctx, r.newLogFile(logs[0]))
	<-hangs
	r.startRotation(ctx, r.newLogFile(logs[1]))
	select {
	case <-reopened:
		t.Error("two rotations at the same time")
	default:
	}
	poll.Until(t, "the other log to be rotated", func() bool {
		fake.Step(slotHold)
		select {
		case <-reopened:
			return true
		default:
			return false
		}
	})
}

// TestCountsOfList: the containers are listed for each one of the node that starts or ends, so those that run
// already cost no allocation.
func TestCountsOfList(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector changes what is allocated")
	}
	var all []Container
	for i := range 1000 {
		all = append(all, Container{ID: fmt.Sprint(i), Log: "log"})
	}
	r, err := NewRotator(RotateConfig{MaxSize: 1, MaxFiles: 2, Workers: 1, Interval: time.Second}, RotateDeps{
		Containers: slices.Values(all), Reopen: (&fakeRuntime{}).reopen, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	r.list()
	if got := testing.AllocsPerRun(10, r.list); got > 2 || len(r.files) != len(all) {
		t.Errorf("a list of %d containers allocates %g times, and finds %d", len(all), got, len(r.files))
	}
}
