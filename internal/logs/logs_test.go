package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseEntry(t *testing.T) {
	at := time.Date(2026, 11, 15, 1, 55, 40, 5, time.UTC)
	const stamp = "2026-11-15T01:55:40.000000005Z "
	for name, c := range map[string]struct {
		line string
		want Entry
		bad  bool
	}{
		"full":            {line: stamp + "stdout F hello world\n", want: Entry{at, Stdout, false, []byte("hello world\n")}},
		"empty line":      {line: stamp + "stderr F \n", want: Entry{at, Stderr, false, []byte("\n")}},
		"partial":         {line: stamp + "stdout P hel\n", want: Entry{at, Stdout, true, []byte("hel")}},
		"more tags":       {line: stamp + "stdout P:x:y hel\n", want: Entry{at, Stdout, true, []byte("hel")}},
		"without newline": {line: stamp + "stdout F hel", want: Entry{at, Stdout, false, []byte("hel")}},
		"json":            {line: `{"log":"a\n","stream":"stderr","time":"2026-11-15T01:55:40.000000005Z"}` + "\n", want: Entry{at, Stderr, false, []byte("a\n")}},
		"json partial":    {line: `{"log":"a","stream":"stdout","time":"2026-11-15T01:55:40.000000005Z"}`, want: Entry{at, Stdout, true, []byte("a")}},
		"empty input":     {line: "", bad: true},
		"no tags":         {line: stamp + "stdout\n", bad: true},
		"no content":      {line: stamp + "stdout F\n", bad: true},
		"bad time":        {line: "yesterday stdout F x\n", bad: true},
		"bad stream":      {line: stamp + "stdin F x\n", bad: true},
		"json cut off":    {line: `{"log":"a`, bad: true},
		"json bad stream": {line: `{"log":"a","time":"2026-11-15T01:55:40Z"}`, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseEntry([]byte(c.line))
			if c.bad {
				if err == nil {
					t.Errorf("%q parsed as %+v", c.line, got)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
}

func entries(kind string, contents ...string) string {
	var b strings.Builder
	for _, c := range contents {
		b.WriteString("2026-11-15T01:55:40Z stdout " + kind + " " + c + "\n")
	}
	return b.String()
}

func TestTail(t *testing.T) {
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("line %d", i)
	}
	long := strings.Repeat("x", 16<<10)
	for name, c := range map[string]struct {
		file        string
		lines, size int
		want        string
	}{
		"empty file":         {"", 80, 2048, ""},
		"zero lines":         {entries("F", "a"), 0, 2048, ""},
		"all of a short log": {entries("F", "a", "b"), 80, 2048, "a\nb\n"},
		"last lines":         {entries("F", many...), 2, 2048, "line 98\nline 99\n"},
		"last bytes":         {entries("F", many...), 80, 10, "8\nline 99\n"},
		"partial joined":     {entries("P", "a", "b") + entries("F", "c"), 80, 2048, "abc\n"},
		"many blocks":        {entries("P", long, long, long) + entries("F", "end"), 3, 1 << 20, long + long + "end\n"},
		"unreadable skipped": {"garbage\n" + entries("F", "a") + "\x00\n" + entries("F", "b"), 80, 2048, "a\nb\n"},
		"unfinished line":    {entries("F", "a", "b") + "2026-11-15T01:55:40Z stdout F half", 1, 2048, "b\nhalf"},
		"unfinished stamp":   {entries("F", "a") + "2026-11-15T01", 80, 2048, "a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestReader(t)
			b.write(c.file)
			got, err := b.Tail(b.path, c.lines, c.size)
			if err != nil || string(got) != c.want {
				t.Errorf("got %.80q %v, want %.80q", got, err, c.want)
			}
		})
	}
}

// A pod that can write its own log must not make the agent read for hours: the file may have no lines and
// terabytes, of which nothing is on the disk.
func TestTailLooksBackToALimit(t *testing.T) {
	b := newTestReader(t)
	b.write(entries("F", "old"))
	f, err := os.OpenFile(b.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(20 << 20); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("\n" + entries("F", "new")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Tail(b.path, 80, 2048); err != nil || string(got) != "new\n" {
		t.Errorf("got %.80q %v, want what the last megabytes have", got, err)
	}
}

func TestTailRejectsFIFO(t *testing.T) {
	b := newTestReader(t)
	fifo := filepath.Join(filepath.Dir(b.path), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Tail(fifo, 80, 2048); err == nil {
		t.Error("a fifo was read")
	}
	if _, err := b.Tail(b.path, 80, 2048); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want not exist", err)
	}
}

func TestLineReaderSkipsLongLines(t *testing.T) {
	huge := strings.Repeat("x", maxLine)
	l := newLineReader(strings.NewReader("a\n" + huge + "\nb\n" + huge))
	var got []string
	for {
		line, err := l.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%.5q", line))
	}
	// The last line has exactly the limit, without a newline.
	if diff := cmp.Diff([]string{`"a\n"`, `"b\n"`, `"xxxxx"`}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func FuzzTail(f *testing.F) {
	f.Add([]byte(entries("P", "a")+entries("F", "b")), 1, 10)
	f.Add([]byte("\n\n"), 3, 1)
	f.Add([]byte(`{"log":"a\n","stream":"stdout","time":"2026-11-15T01:55:40Z"}`), 2, 100)
	f.Fuzz(func(t *testing.T, file []byte, lines, size int) {
		lines, size = lines&0xff, size&0xffff
		start, err := tailOffset(t.Context(), bytes.NewReader(file), 0, int64(len(file)), lines)
		if err != nil {
			t.Fatal(err)
		}
		if start < 0 || start > int64(len(file)) {
			t.Fatalf("offset %d of %d", start, len(file))
		}
		if start > 0 && (file[start-1] != '\n' || bytes.Count(file[start:], []byte{'\n'}) != lines) {
			t.Fatalf("offset %d does not begin the last %d lines", start, lines)
		}
		tail, err := lastBytes(bytes.NewReader(file[start:]), size)
		if err != nil || len(tail) > size {
			t.Fatalf("%d bytes of %d: %v", len(tail), size, err)
		}
	})
}
