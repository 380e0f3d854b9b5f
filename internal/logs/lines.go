package logs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
)

// maxLine bounds the memory for one line; longer lines are skipped. Runtimes split lines at
// 16 KiB by default.
const maxLine = 16 << 20

// lineReader reads a file line by line.
type lineReader struct {
	r    *bufio.Reader
	buf  []byte
	used int64 // bytes of the lines returned or skipped so far
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 32<<10)}
}

// next returns the next line with its newline; the last line of a file may lack one. The
// slice is valid until the following call.
func (l *lineReader) next() ([]byte, error) {
	l.buf = l.buf[:0]
	skipped := false
	for {
		part, err := l.r.ReadSlice('\n')
		l.used += int64(len(part))
		if len(l.buf)+len(part) > maxLine {
			skipped = true
			l.buf = l.buf[:0]
		}
		if err == nil && len(l.buf) == 0 && !skipped {
			return part, nil // the common case: no copy
		}
		if !skipped {
			l.buf = append(l.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case skipped && err == nil:
			skipped, l.buf = false, l.buf[:0]
			continue
		case err == nil || errors.Is(err, io.EOF) && len(l.buf) > 0:
			return l.buf, nil
		default:
			return nil, err
		}
	}
}

// tailOffset returns the offset of the last n lines of a file of the given size, or first if they begin
// before. It reads the file backwards. It does not count an incomplete last line, which is still being written.
func tailOffset(ctx context.Context, f io.ReaderAt, first, size int64, n int) (int64, error) {
	const block = 16 << 10
	buf := make([]byte, block)
	newlines := 0
	for end := size; end > first; end -= block {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		start := max(end-block, first)
		part := buf[:end-start]
		if _, err := f.ReadAt(part, start); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		for i := len(part); ; {
			if i = bytes.LastIndexByte(part[:i], '\n'); i < 0 {
				break
			}
			if newlines++; newlines > n {
				return start + int64(i) + 1, nil
			}
		}
	}
	return first, nil
}
