package bugreport

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Limits of the archive, in bytes before compression.
const (
	maxEntry = 4 << 20
	maxTotal = 64 << 20
)

// archive is a tar.gz with a limited size. A failed entry is noted in the index and fails nothing else.
type archive struct {
	dir     string
	now     time.Time
	zip     *gzip.Writer
	tar     *tar.Writer
	left    int
	entries []entry
	err     error // of the writer below
}

// entry is a line of the index.
type entry struct {
	name string
	size int
	note string
}

func newArchive(to io.Writer, dir string, now time.Time) *archive {
	zip := gzip.NewWriter(to)
	return &archive{dir: dir, now: now, zip: zip, tar: tar.NewWriter(zip), left: maxTotal}
}

// part says which part of a text is kept if it is too large.
type part bool

const (
	beginning part = false
	end       part = true
)

// add adds a text without secrets. It cuts what exceeds a limit.
func (a *archive) add(name string, text []byte, keep part, note string) {
	if limit := min(maxEntry, a.left); len(text) > limit {
		note = strings.TrimPrefix(fmt.Sprintf("%s; truncated from %d bytes", note, len(text)), "; ")
		if keep == end {
			text = text[len(text)-limit:]
		} else {
			text = text[:limit]
		}
	}
	a.left -= len(text)
	a.entries = append(a.entries, entry{name, len(text), note})
	a.write(name, text)
}

// fail notes that something could not be read.
func (a *archive) fail(name string, reason string) {
	a.entries = append(a.entries, entry{name: name, size: -1, note: reason})
}

func (a *archive) write(name string, text []byte) {
	if a.err != nil {
		return
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: a.dir + "/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: a.now}
	if a.err = a.tar.WriteHeader(header); a.err == nil {
		_, a.err = a.tar.Write(text)
	}
}

// finish writes the index, which is the last entry.
func (a *archive) finish(about string) error {
	var index strings.Builder
	index.WriteString(about)
	rows := tabwriter.NewWriter(&index, 0, 0, 2, ' ', 0)
	fmt.Fprintln(rows, "BYTES\tFILE\tNOTE")
	for _, e := range a.entries {
		size := fmt.Sprint(e.size)
		if e.size < 0 {
			size = "-"
		}
		fmt.Fprintf(rows, "%s\t%s\t%s\n", size, e.name, strings.ReplaceAll(e.note, "\n", " "))
	}
	if err := rows.Flush(); err != nil {
		return err
	}
	a.write("index.txt", []byte(index.String()))
	if err := errors.Join(a.err, a.tar.Close(), a.zip.Close()); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return nil
}
