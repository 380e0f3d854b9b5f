package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// followedLog is a log that a Reader follows and a fake runtime writes.
type followedLog struct {
	*testReader
	file  *os.File // that the runtime writes to
	ended chan struct{}
	lines *bufio.Scanner
	done  chan error
}

func (b *testReader) follow(ctx context.Context, o Options) *followedLog {
	b.t.Helper()
	f := &followedLog{testReader: b, ended: make(chan struct{}), done: make(chan error, 1)}
	f.reopen()
	b.t.Cleanup(func() { f.file.Close() })
	o.Ended = f.ended
	r, w := io.Pipe()
	f.lines = bufio.NewScanner(r)
	go func() {
		err := b.Read(ctx, b.path, o, w)
		w.CloseWithError(io.EOF)
		f.done <- err
	}()
	return f
}

// reopen is what the runtime does after a rotation: it opens the new file before it
// closes the old one.
func (f *followedLog) reopen() (old *os.File) {
	f.t.Helper()
	old = f.file
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	f.file = file
	return old
}

func (f *followedLog) append(to *os.File, text string) {
	f.t.Helper()
	if _, err := to.WriteString(text); err != nil {
		f.t.Fatal(err)
	}
}

func (f *followedLog) expect(want ...string) {
	f.t.Helper()
	for _, line := range want {
		if !f.lines.Scan() || f.lines.Text() != line {
			f.t.Fatalf("got %q (%v), want %q", f.lines.Text(), f.lines.Err(), line)
		}
	}
}

func (f *followedLog) rotate(name string) {
	f.t.Helper()
	if err := os.Rename(f.path, f.path+name); err != nil {
		f.t.Fatal(err)
	}
}

// end makes the container exit and expects the rest of its log.
func (f *followedLog) end(rest ...string) {
	f.t.Helper()
	f.file.Close()
	close(f.ended)
	f.expect(rest...)
	if f.lines.Scan() {
		f.t.Errorf("unexpected line: %q", f.lines.Text())
	}
	if err := <-f.done; err != nil {
		f.t.Errorf("Read: %v", err)
	}
}

func TestFollow(t *testing.T) {
	f := newTestReader(t).follow(t.Context(), Options{})
	f.append(f.file, at(1, Stdout, "F", "one"))
	f.expect("one")
	f.append(f.file, at(2, Stdout, "F", "two")+"2026-11-15T01:55:03Z stdout F ")
	f.expect("two")
	f.append(f.file, "three\n")
	f.expect("three")
	f.append(f.file, at(4, Stdout, "F", "four"))
	f.end("four")
}

// The log is rotated while it is followed, and the old file gets late lines.
func TestFollowRotations(t *testing.T) {
	f := newTestReader(t).follow(t.Context(), Options{})
	f.append(f.file, at(1, Stdout, "F", "one"))
	f.expect("one")
	f.rotate(".20261115-015501")
	f.append(f.file, at(2, Stdout, "F", "two"))
	f.expect("two")
	old := f.reopen()
	f.append(f.file, at(4, Stdout, "F", "four"))
	f.append(old, at(3, Stdout, "F", "three"))
	old.Close()
	f.expect("three", "four")
	f.append(f.file, at(5, Stdout, "F", "five"))
	f.end("five")
}

// A reader that blocks during several rotations gets everything that was written meanwhile.
func TestFollowManyRotations(t *testing.T) {
	f := newTestReader(t).follow(t.Context(), Options{})
	f.append(f.file, at(0, Stdout, "F", "first"))
	f.expect("first")
	filler := strings.Repeat(at(1, Stdout, "F", strings.Repeat("x", 4000)), 20) // more than is buffered
	var want []string
	for i := range 4 {
		f.append(f.file, filler+at(2, Stdout, "F", fmt.Sprint("end of ", i)))
		for range 20 {
			want = append(want, strings.Repeat("x", 4000))
		}
		want = append(want, fmt.Sprint("end of ", i))
		f.rotate(fmt.Sprintf(".20261115-01550%d", i))
		f.reopen().Close()
	}
	f.append(f.file, at(9, Stdout, "F", "last"))
	f.expect(want...)
	f.end("last")
}

func TestFollowWriterThatNeverCloses(t *testing.T) {
	f := newTestReader(t).follow(t.Context(), Options{})
	f.append(f.file, at(1, Stdout, "F", "one"))
	f.expect("one")
	f.rotate(".1")
	old := f.reopen()
	defer old.Close()
	f.append(f.file, at(2, Stdout, "F", "two"))
	f.expect("two")
	f.end()
}

func TestFollowTailAndLimit(t *testing.T) {
	b := newTestReader(t)
	b.write(at(1, Stdout, "F", "one") + at(2, Stdout, "F", "two"))
	f := b.follow(t.Context(), Options{Tail: ptr[int64](1), Limit: ptr[int64](8)})
	f.expect("two")
	f.append(f.file, at(3, Stdout, "F", "three"))
	f.expect("thre")
	if err := <-f.done; err != nil {
		t.Error(err)
	}
}

func TestFollowTruncated(t *testing.T) {
	f := newTestReader(t).follow(t.Context(), Options{})
	f.append(f.file, at(1, Stdout, "F", "a long line before"))
	f.expect("a long line before")
	if err := f.file.Truncate(0); err != nil {
		t.Fatal(err)
	}
	f.append(f.file, at(2, Stdout, "F", "two"))
	f.expect("two")
	f.end()
}

func TestFollowStopsWhenCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := newTestReader(t)
	f := b.follow(ctx, Options{})
	f.append(f.file, at(1, Stdout, "F", "one"))
	f.expect("one")
	cancel()
	select {
	case err := <-f.done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want canceled", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still following")
	}
	b.watcher.mu.Lock()
	defer b.watcher.mu.Unlock()
	if n := len(b.watcher.watches); n != 0 {
		t.Errorf("%d watches left", n)
	}
}

// An old file is written to after the next one.
func TestFollowLateWrites(t *testing.T) {
	f := newTestReader(t).follow(t.Context(), Options{})
	f.append(f.file, at(1, Stdout, "F", "one"))
	f.expect("one")
	f.rotate(".1")
	first := f.reopen()
	f.append(f.file, at(3, Stdout, "F", "three"))
	f.rotate(".2")
	second := f.reopen()
	f.append(f.file, at(4, Stdout, "F", "four"))
	second.Close()
	// The clock of modification times is coarse.
	later := time.Now().Add(time.Second)
	f.append(first, at(2, Stdout, "F", "two"))
	if err := os.Chtimes(f.path+".1", later, later); err != nil {
		t.Fatal(err)
	}
	first.Close()
	f.expect("two", "three", "four")
	f.end()
}

// The log is rotated as fast as possible while it is followed.
func TestFollowWhileRotating(t *testing.T) {
	f := newTestReader(t).follow(t.Context(), Options{})
	f.append(f.file, at(0, Stdout, "F", "first"))
	f.expect("first")
	const lines = 2000
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := range lines {
			f.append(f.file, at(1, Stdout, "F", fmt.Sprint("line ", i)))
			if i%5 == 4 {
				f.rotate(fmt.Sprintf(".%04d", i))
				f.reopen().Close()
			}
		}
	}()
	for i := range lines {
		f.expect(fmt.Sprint("line ", i))
	}
	<-written
	f.end()
}
