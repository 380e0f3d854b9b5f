package logs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// docker writes a log as Docker does.
type docker struct {
	t    *testing.T
	file *os.File
	want strings.Builder // the log in the CRI's format
	n    int
}

func newDocker(t *testing.T, path string) *docker {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() }) // only written
	return &docker{t: t, file: file}
}

func (d *docker) write(lines int) {
	d.t.Helper()
	for range lines {
		d.n++
		at := time.Unix(1_700_000_000, int64(d.n)).UTC()
		text := fmt.Sprintf("line %d %s\n", d.n, strings.Repeat("x", d.n%200))
		line, err := json.Marshal(entry{Log: text, Stream: "stdout", Time: at})
		if err != nil {
			d.t.Fatal(err)
		}
		if _, err := d.file.Write(append(line, '\n')); err != nil {
			d.t.Fatal(err)
		}
		fmt.Fprintf(&d.want, "%s stdout F %s", at.Format(time.RFC3339Nano), text)
	}
}

func newFollower(dir string) *follower {
	return &follower{id: "c", source: filepath.Join(dir, "c-json.log"), target: filepath.Join(dir, "0.log"), saved: filepath.Join(dir, "position"),
		log: slog.New(slog.DiscardHandler), wake: make(chan struct{}, 1), reopen: make(chan chan error), finish: make(chan struct{}), finished: make(chan struct{})}
}

// TestCrashesAndRotations ends the converter at random points, also in the middle of a line of output and
// before the position is saved, and renames the log at random points. The parts together are the whole log.
func TestCrashesAndRotations(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dir := t.TempDir()
			random := rand.New(rand.NewPCG(seed, 1))
			d := newDocker(t, filepath.Join(dir, "c-json.log"))
			f := newFollower(dir)
			var rotated []string
			for step := range 12 {
				d.write(random.IntN(30))
				old, hadPosition := os.ReadFile(f.saved)
				if err := f.drain(); err != nil {
					t.Fatal(err)
				}
				switch random.IntN(4) {
				case 0: // rotation
					name := fmt.Sprintf("%s.%d", f.target, step)
					if err := os.Rename(f.target, name); err != nil {
						t.Fatal(err)
					}
					rotated = append(rotated, name)
					before, _ := os.ReadFile(f.saved)
					if err := f.reopenTarget(); err != nil {
						t.Fatal(err)
					}
					if random.IntN(2) == 0 { // the crash came before the position was saved
						restore(t, f.saved, before, nil)
						f.close()
						f = newFollower(dir)
					}
				case 1: // a crash before the position was saved, in the middle of a write
					f.close()
					restore(t, f.saved, old, hadPosition)
					if hadPosition == nil {
						cut(t, f.target, f.saved, random)
					}
					f = newFollower(dir)
				case 2: // a crash
					f.close()
					f = newFollower(dir)
				}
			}
			if err := f.drain(); err != nil {
				t.Fatal(err)
			}
			f.close()
			var got strings.Builder
			for _, name := range append(rotated, f.target) {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				got.Write(text)
			}
			if got.String() != d.want.String() {
				t.Errorf("%d bytes; want %d", got.Len(), d.want.Len())
			}
		})
	}
}

// drain converts all that there is.
func (f *follower) drain() error {
	for {
		if more, err := f.pump(); err != nil || !more {
			return err
		}
	}
}

// restore puts back the position of before.
func restore(t *testing.T, file string, text []byte, err error) {
	t.Helper()
	if err != nil || text == nil {
		return // the first position is saved before anything is written to a rotated log
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// cut removes a part of the output that was written after the position was saved.
func cut(t *testing.T, target, saved string, random *rand.Rand) {
	t.Helper()
	at, ok, err := readPosition(saved)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	s, err := stat(target)
	if err != nil {
		t.Fatal(err)
	}
	if s.Ino != at.Inode || s.Size <= at.Size || at.Size < 0 {
		return
	}
	if err := os.Truncate(target, at.Size+random.Int64N(s.Size-at.Size)); err != nil {
		t.Fatal(err)
	}
}

// TestLostPosition: only what is newer than the log's last line is added.
func TestLostPosition(t *testing.T) {
	dir := t.TempDir()
	d := newDocker(t, filepath.Join(dir, "c-json.log"))
	f := newFollower(dir)
	for range 3 {
		d.write(10)
		if err := f.drain(); err != nil {
			t.Fatal(err)
		}
		f.close()
		if err := os.Remove(f.saved); err != nil {
			t.Fatal(err)
		}
		f = newFollower(dir)
	}
	if text, err := os.ReadFile(f.target); err != nil || string(text) != d.want.String() {
		t.Errorf("%q, %v; want %q", text, err, d.want.String())
	}
}

// TestDamagedLinesAreSkipped: as after a crash of the machine.
func TestDamagedLinesAreSkipped(t *testing.T) {
	dir := t.TempDir()
	d := newDocker(t, filepath.Join(dir, "c-json.log"))
	d.write(1)
	if _, err := d.file.WriteString("{\"log\":\"cut\n\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	d.write(1)
	f := newFollower(dir)
	if err := f.drain(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(f.target); err != nil || string(text) != d.want.String() {
		t.Errorf("%q, %v; want %q", text, err, d.want.String())
	}
}

// TestConvertedPartIsFreed: Docker's file keeps its size, and conversion goes on.
func TestConvertedPartIsFreed(t *testing.T) {
	dir := t.TempDir()
	d := newDocker(t, filepath.Join(dir, "c-json.log"))
	f := newFollower(dir)
	t.Cleanup(f.close)
	for range 3 {
		d.write(70_000)
		if err := f.drain(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := stat(f.source)
	if err != nil {
		t.Fatal(err)
	}
	if s.Size < 2*punchEvery {
		t.Fatalf("the source has only %d bytes", s.Size)
	}
	if used := s.Blocks * 512; used > punchEvery+2*punchKeeping {
		t.Errorf("%d of %d bytes are still used", used, s.Size)
	}
	if text, err := os.ReadFile(f.target); err != nil || string(text) != d.want.String() {
		t.Errorf("%d bytes, %v; want %d", len(text), err, d.want.Len())
	}
}

// TestFinish: when it returns, the log is complete; it may be repeated; and Reopen says so then.
func TestFinish(t *testing.T) {
	dir := t.TempDir()
	l, err := New(filepath.Join(dir, "positions"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	source, target := filepath.Join(dir, "c-json.log"), filepath.Join(dir, "pod/c/0.log")
	d := newDocker(t, source)
	if err := l.Follow("c", source, target); err != nil {
		t.Fatal(err)
	}
	d.write(1000)
	for range 2 {
		if err := l.Finish(t.Context(), "c", source, target); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != d.want.String() {
		t.Errorf("%d bytes, %v; want %d", len(text), err, d.want.Len())
	}
	if err := l.Reopen(t.Context(), "c"); err == nil {
		t.Error("reopened the log of a container that has ended")
	}
	l.Remove("c")
	if known, err := l.Known(); err != nil || len(known) != 0 {
		t.Errorf("positions %v, %v; want none", known, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
