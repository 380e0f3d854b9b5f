package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// testReader is a Reader with the log directory of a pod.
type testReader struct {
	*Reader
	t    *testing.T
	path string // of the log
}

func newTestReader(t *testing.T) *testReader {
	t.Helper()
	dir := t.TempDir()
	r, err := New(Config{Dir: dir}, Deps{Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	b := &testReader{Reader: r, t: t, path: filepath.Join(dir, "ns_pod_uid", "c", "0.log")}
	if err := os.MkdirAll(filepath.Dir(b.path), 0o755); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *testReader) write(text string) {
	b.t.Helper()
	if err := os.WriteFile(b.path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func ptr[T any](v T) *T { return &v }

func at(second int, stream Stream, kind, content string) string {
	return fmt.Sprintf("2026-11-15T01:55:%02dZ %s %s %s\n", second, stream, kind, content)
}

func TestRead(t *testing.T) {
	three := at(1, Stdout, "F", "one") + at(2, Stderr, "F", "two") + at(3, Stdout, "F", "three")
	split := at(1, Stdout, "P", "a") + at(2, Stdout, "F", "b") + at(3, Stderr, "F", "c")
	for name, c := range map[string]struct {
		file string
		opts Options
		want string
	}{
		"all":                                    {three, Options{}, "one\ntwo\nthree\n"},
		"empty":                                  {"", Options{}, ""},
		"tail":                                   {three, Options{Tail: ptr[int64](2)}, "two\nthree\n"},
		"tail of zero":                           {three, Options{Tail: ptr[int64](0)}, ""},
		"tail larger than the log":               {three, Options{Tail: ptr[int64](1 << 62)}, "one\ntwo\nthree\n"},
		"tail does not count an incomplete line": {three + "2026-11-15T01:55:04Z stdout F ha", Options{Tail: ptr[int64](1)}, "three\n"},
		"incomplete last line":                   {three + "2026-11-15T01:55:04Z stdout F ha", Options{}, "one\ntwo\nthree\nha"},
		"since":                                  {three, Options{Since: time.Date(2026, 11, 15, 1, 55, 2, 0, time.UTC)}, "two\nthree\n"},
		"stdout":                                 {three, Options{Stream: Stdout}, "one\nthree\n"},
		"stderr":                                 {three, Options{Stream: Stderr}, "two\n"},
		"limit":                                  {three, Options{Limit: ptr[int64](6)}, "one\ntw"},
		"limit at a line's end":                  {three, Options{Limit: ptr[int64](4)}, "one\n"},
		"limit above all":                        {three, Options{Limit: ptr[int64](400)}, "one\ntwo\nthree\n"},
		"timestamps": {split, Options{Timestamps: true},
			"2026-11-15T01:55:01.000000000Z ab\n2026-11-15T01:55:03.000000000Z c\n"},
		"limit includes timestamps": {three, Options{Timestamps: true, Limit: ptr[int64](12)}, "2026-11-15T0"},
		"garbage is skipped":        {"garbage\n" + three + "\x00\n", Options{}, "one\ntwo\nthree\n"},
		"filtered partial line":     {split, Options{Stream: Stderr, Timestamps: true}, "2026-11-15T01:55:03.000000000Z c\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestReader(t)
			b.write(c.file)
			var got bytes.Buffer
			if err := b.Read(t.Context(), b.path, c.opts, &got); err != nil || got.String() != c.want {
				t.Errorf("got %q %v, want %q", got.String(), err, c.want)
			}
		})
	}
}

// Links out of the pod's directory, which a pod that mounts it could create, are not followed.
func TestReadRejectsLinksOutOfPodDirectory(t *testing.T) {
	b := newTestReader(t)
	secret := filepath.Join(t.TempDir(), "shadow")
	if err := os.WriteFile(secret, []byte(at(1, Stdout, "F", "secret")), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(b.path)
	other := filepath.Join(b.dir, "ns_other_uid", "c")
	if err := os.MkdirAll(other, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "0.log"), []byte(at(1, Stdout, "F", "secret")), 0o600); err != nil {
		t.Fatal(err)
	}
	b.write(at(1, Stdout, "F", "fine"))
	for name, target := range map[string]string{
		"absolute.log": secret,
		"relative.log": "../../../" + filepath.Base(filepath.Dir(secret)) + "/shadow",
		"other.log":    "../../ns_other_uid/c/0.log",
		"inside.log":   "0.log",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		err := b.Read(t.Context(), filepath.Join(dir, name), Options{}, &got)
		if name == "inside.log" {
			if err != nil || got.String() != "fine\n" {
				t.Errorf("%s: %q %v", name, got.String(), err)
			}
		} else if err == nil || got.Len() > 0 {
			t.Errorf("%s: was followed: %q", name, got.String())
		} else if tail, err := b.Tail(filepath.Join(dir, name), 80, 2048); err == nil {
			t.Errorf("%s: its end was read: %q", name, tail)
		}
	}
	for _, path := range []string{secret, b.dir + "/../" + filepath.Base(secret), b.dir, filepath.Join(b.dir, "ns_pod_uid"), ""} {
		if err := b.Read(t.Context(), path, Options{}, io.Discard); err == nil {
			t.Errorf("%q was read", path)
		}
	}
}

// A request for a file that has no lines ends when its client has gone.
func TestReadOfFileWithoutLinesEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, o := range map[string]Options{"whole": {}, "tail": {Tail: ptr[int64](10)}, "follow": {Ended: make(chan struct{})}} {
		b := newTestReader(t)
		b.write("")
		if err := os.Truncate(b.path, 64<<20); err != nil {
			t.Fatal(err)
		}
		if err := b.Read(ctx, b.path, o, &counter{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want the error of the context", name, err)
		}
	}
}

// The tail of a sparse file of a terabyte is read backwards.
func TestReadLargeTail(t *testing.T) {
	b := newTestReader(t)
	f, err := os.Create(b.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("\n"+at(1, Stdout, "F", "end")), 1<<40); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	var got bytes.Buffer
	if err := b.Read(t.Context(), b.path, Options{Tail: ptr[int64](1)}, &got); err != nil || got.String() != "end\n" {
		t.Errorf("got %q %v", got.String(), err)
	}
}

// Reading a file of 100 MB needs little memory.
func TestReadLargeFile(t *testing.T) {
	const lines, length = 25_000, 4 << 10
	b := newTestReader(t)
	b.write(strings.Repeat(at(1, Stdout, "F", strings.Repeat("x", length-1)), lines))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	got := &counter{}
	err := b.Read(t.Context(), b.path, Options{}, got)
	runtime.ReadMemStats(&after)
	if err != nil || got.bytes != lines*length {
		t.Fatalf("read %d bytes, %v, want %d", got.bytes, err, lines*length)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
		t.Errorf("%d KB of memory were used for it in all, want no more than 4 MB", took>>10)
	}
}

// counter counts what is written to it.
type counter struct{ bytes int }

func (c *counter) Write(data []byte) (int, error) {
	c.bytes += len(data)
	return len(data), nil
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(at(1, Stdout, "P", "a")+at(2, Stderr, "F", "b")), int64(1), int64(3), true)
	f.Add([]byte("x\n\n{}"), int64(-1), int64(1), false)
	dir := f.TempDir()
	r, err := New(Config{Dir: dir}, Deps{Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(dir, "pod", "0.log")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, file []byte, tail, limit int64, timestamps bool) {
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		read := func(o Options) string {
			var got bytes.Buffer
			if err := r.Read(t.Context(), path, o, &got); err != nil {
				t.Fatal(err)
			}
			return got.String()
		}
		all := read(Options{Timestamps: timestamps})
		if limit = limit&0xffff + 1; read(Options{Timestamps: timestamps, Limit: &limit}) != all[:min(int64(len(all)), limit)] {
			t.Errorf("a limit of %d changed more than the length", limit)
		}
		if tail &= 0xff; !strings.Contains(all, read(Options{Tail: &tail})) && !timestamps {
			t.Errorf("the last %d lines are not part of all", tail)
		}
		over := make(chan struct{})
		close(over)
		if followed := read(Options{Timestamps: timestamps, Ended: over}); followed != all {
			t.Errorf("following an ended log gave %q, reading it %q", followed, all)
		}
	})
}
