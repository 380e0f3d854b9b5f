package stats

import (
	"bytes"
	"math"
	"strconv"

	"golang.org/x/sys/unix"
)

// fileReader reads small kernel files into one buffer: a scrape reads thousands of them. The
// result of read is valid until the next read.
type fileReader struct{ buf []byte }

func newFileReader() *fileReader { return &fileReader{buf: make([]byte, 16<<10)} }

func (s *fileReader) read(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &pathError{path, err}
	}
	defer unix.Close(fd)
	n := 0
	for {
		if n == len(s.buf) {
			s.buf = append(s.buf, make([]byte, len(s.buf))...)
		}
		m, err := unix.Read(fd, s.buf[n:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, &pathError{path, err}
		case m == 0:
			return s.buf[:n], nil
		default:
			n += m
		}
	}
}

// pathError is the error of a system call on a file.
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string { return e.path + ": " + e.err.Error() }
func (e *pathError) Unwrap() error { return e.err }

// unlimited is "no limit" of cgroup v1, up to rounding by the kernel, and stands for "max" of v2.
const unlimited = math.MaxUint64

// number reads a file that holds one number. It returns fallback for a missing file and for
// "max" or anything else that is not a number.
func (s *fileReader) number(path string, fallback uint64) uint64 {
	text, err := s.read(path)
	if err != nil {
		return fallback
	}
	n, ok := parseUint(bytes.TrimSpace(text))
	if !ok {
		return fallback
	}
	return n
}

// pairs calls f for each line of a flat-keyed file.
func pairs(text []byte, f func(key []byte, value uint64)) {
	for len(text) > 0 {
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		key, rest, found := bytes.Cut(line, []byte{' '})
		if !found {
			continue
		}
		if n, ok := parseUint(rest); ok {
			f(key, n)
		}
	}
}

// parseUint parses a decimal number without allocating a string.
func parseUint(text []byte) (n uint64, ok bool) {
	if len(text) == 0 {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		next := n*10 + uint64(c-'0')
		if n > math.MaxUint64/10 || next < n {
			return 0, false
		}
		n = next
	}
	return n, true
}

func parseFloat(text []byte) float64 {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return 0
	}
	return f
}
