package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// maxLookBack is how much of the end of a log Tail reads. A pod that mounts its log directory can make a file
// of any size.
const maxLookBack = maxLine

// Tail returns the end of a container's log with both streams: at most the last lines entries,
// and of those at most the last size bytes. It skips entries that cannot be parsed: a part of a
// damaged log is worth more than an error.
func (r *Reader) Tail(path string, lines, size int) ([]byte, error) {
	dir, name, err := r.openDir(path)
	if err != nil {
		return nil, fmt.Errorf("read tail of log: %w", err)
	}
	defer dir.Close()
	f, length, err := openIn(dir, name)
	if err != nil {
		return nil, fmt.Errorf("read tail of log: %w", err)
	}
	defer f.Close()
	start, err := tailOffset(context.Background(), f, max(length-maxLookBack, 0), length, lines)
	if err != nil {
		return nil, fmt.Errorf("read tail of log: %w", err)
	}
	tail, err := lastBytes(io.NewSectionReader(f, start, length-start), size)
	if err != nil {
		return nil, fmt.Errorf("read tail of log: %w", err)
	}
	return tail, nil
}

// lastBytes concatenates the entries' content, keeping the last size bytes.
func lastBytes(r io.Reader, size int) ([]byte, error) {
	var tail []byte
	for l := newLineReader(r); ; {
		line, err := l.next()
		if errors.Is(err, io.EOF) {
			return tail, nil
		}
		if err != nil {
			return nil, err
		}
		entry, err := ParseEntry(line)
		if err != nil {
			continue
		}
		tail = append(tail, entry.Content...)
		if extra := len(tail) - size; extra > 0 {
			tail = append(tail[:0], tail[extra:]...)
		}
	}
}
