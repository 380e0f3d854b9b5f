package filetree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// chain makes a chain of directories below top, each with a file.
func chain(t *testing.T, top string, depth int, name string) {
	t.Helper()
	fd, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY, 0)
	must(t, err)
	for range depth {
		must(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err, unix.Close(fd))
		must(t, unix.Mknodat(next, "file", unix.S_IFREG|0o600, 0))
		fd = next
	}
	must(t, unix.Close(fd))
}

func open(t *testing.T, top string, scope Scope) *Cursor {
	t.Helper()
	c, err := Open(top, scope)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

// walk enters every directory and counts all entries.
func walk(t *testing.T, c *Cursor) (entries int) {
	t.Helper()
	for {
		e, err := c.Next(t.Context())
		switch {
		case errors.Is(err, io.EOF) && c.Depth() == 0:
			return entries
		case errors.Is(err, io.EOF):
			must(t, c.Leave())
		case err != nil:
			t.Fatal(err)
		default:
			entries++
			if c.TypeOf(e) == unix.DT_DIR {
				must(t, c.Enter(e.Name))
			}
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(entries)
}

// TestDeepTree: a tree deeper than a path can name is walked with few open files.
func TestDeepTree(t *testing.T) {
	const depth = 300
	top := t.TempDir()
	name := strings.Repeat("d", 255)
	chain(t, top, depth, name)
	t.Cleanup(func() { flatten(t, top, name) })
	c := open(t, top, OneMount)
	before := openFiles(t)
	for range depth {
		must(t, c.Enter(name))
	}
	if held := openFiles(t) - before; held > OpenDirs {
		t.Errorf("%d files are held open, want at most %d", held, OpenDirs)
	}
	for range depth {
		must(t, c.Leave())
	}
	if got := walk(t, c); got != 2*depth {
		t.Errorf("%d entries, want %d", got, 2*depth)
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open after the walk, %d were before", after, before)
	}
}

// flatten shortens a chain of directories so that t.TempDir can remove it.
func flatten(t *testing.T, top, name string) {
	for i := 0; ; i++ {
		below := filepath.Join(top, name, name)
		if err := os.Rename(below, filepath.Join(top, strconv.Itoa(i))); err != nil {
			return
		}
		must(t, os.Rename(filepath.Join(top, strconv.Itoa(i)), filepath.Join(top, "next")), os.RemoveAll(filepath.Join(top, name)),
			os.Rename(filepath.Join(top, "next"), filepath.Join(top, name)))
	}
}

// TestWideTree walks directories that take many reads and are left for a subdirectory in between,
// at a depth where they stay open and at one where they are closed meanwhile.
func TestWideTree(t *testing.T) {
	for _, depth := range []int{0, OpenDirs + 3} {
		t.Run(fmt.Sprint("depth ", depth), func(t *testing.T) {
			const wide = 300
			top := t.TempDir()
			dir := filepath.Join(top, strings.Repeat("n/", depth))
			for i := range wide {
				must(t, os.MkdirAll(filepath.Join(dir, fmt.Sprint("dir-", i), "in"), 0o755), os.WriteFile(filepath.Join(dir, fmt.Sprint("file-", i)), nil, 0o600))
			}
			if got := walk(t, open(t, top, OneMount)); got != depth+3*wide {
				t.Errorf("%d entries, want %d", got, depth+3*wide)
			}
		})
	}
}

func TestEnterFollowsNoLink(t *testing.T) {
	top := t.TempDir()
	must(t, os.Symlink("/", filepath.Join(top, "link")), os.WriteFile(filepath.Join(top, "file"), nil, 0o600))
	c := open(t, top, AllMounts)
	for name, want := range map[string]error{"link": unix.ENOTDIR, "file": unix.ENOTDIR, "none": unix.ENOENT, "..": unix.EXDEV} {
		if err := c.Enter(name); !errors.Is(err, want) {
			t.Errorf("enter %s: %v, want %v", name, err, want)
		}
	}
	if _, err := Open(filepath.Join(top, "link"), AllMounts); err == nil {
		t.Error("opened a link")
	}
}

func TestEnterMountPoint(t *testing.T) {
	if err := open(t, "/", OneMount).Enter("proc"); !errors.Is(err, unix.EXDEV) {
		t.Errorf("one mount: %v, want %v", err, unix.EXDEV)
	}
	if err := open(t, "/", AllMounts).Enter("proc"); err != nil {
		t.Errorf("all mounts: %v", err)
	}
}

// TestLeaveAfterMove: a moved directory has another parent. The cursor continues in the deepest
// directory that stayed open.
func TestLeaveAfterMove(t *testing.T) {
	dir := t.TempDir()
	top, elsewhere := filepath.Join(dir, "tree"), filepath.Join(dir, "elsewhere")
	must(t, os.MkdirAll(elsewhere, 0o755), os.Mkdir(top, 0o755))
	chain(t, top, OpenDirs+8, "n")
	c := open(t, top, AllMounts)
	for range OpenDirs + 8 {
		must(t, c.Enter("n"))
	}
	must(t, os.Rename(filepath.Join(top, strings.Repeat("n/", OpenDirs+5)), filepath.Join(elsewhere, "n")))
	for range 3 {
		must(t, c.Leave())
	}
	if err := c.Leave(); !errors.Is(err, ErrMoved) {
		t.Errorf("error %v, want %v", err, ErrMoved)
	}
	if want := filepath.Join(top, strings.Repeat("n/", OpenDirs-1), "x"); c.Path("x") != want {
		t.Errorf("continues in %s, want %s", c.Path("x"), want)
	}
}

func TestRewind(t *testing.T) {
	top := t.TempDir()
	chain(t, top, 3, "n")
	c := open(t, top, OneMount)
	for range 2 {
		if got := walk(t, c); got != 6 {
			t.Errorf("%d entries, want 6", got)
		}
		must(t, c.Rewind())
	}
}

func TestNextIsCancelled(t *testing.T) {
	top := t.TempDir()
	chain(t, top, 1, "n")
	c := open(t, top, OneMount)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func TestRemovedDirectoryIsEmpty(t *testing.T) {
	top := filepath.Join(t.TempDir(), "top")
	must(t, os.Mkdir(top, 0o755))
	c := open(t, top, OneMount)
	must(t, os.Remove(top))
	if _, err := c.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("error %v, want the end", err)
	}
}

// FuzzParseEntry: for any input the list ends, and no byte is read past it.
func FuzzParseEntry(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x18\x00\x04name\x00"))
	f.Fuzz(func(t *testing.T, list []byte) {
		for rest := list; len(rest) > 0; {
			before := len(rest)
			if _, _, rest = parseEntry(rest, 0); len(rest) >= before {
				t.Fatal("no progress")
			}
		}
	})
}

// TestRepeats: a cycle of offsets is detected, distinct offsets are not.
func TestRepeats(t *testing.T) {
	for _, cycle := range []int{0, 1, 2, 7, 1000} {
		d, steps := dir{}, 0
		for ; steps < 10_000; steps++ {
			d.next = int64(5 + steps)
			if cycle > 0 && steps > 30 {
				d.next = int64(100 + steps%cycle)
			}
			if d.repeats() {
				break
			}
		}
		if detected := steps < 10_000; detected != (cycle > 0) {
			t.Errorf("cycle of %d: detected %v", cycle, detected)
		}
	}
}
