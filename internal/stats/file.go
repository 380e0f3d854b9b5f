package stats

import (
	"bytes"
	"math"
	"strconv"

	"golang.org/x/sys/unix"
)

// scratch reads small kernel files into one buffer: a scrape reads thousands of them. What
// read returns is good until the next read.
type scratch struct{ buf []byte }

func newScratch() *scratch { return &scratch{buf: make([]byte, 16<<10)} }

func (s *scratch) read(path string) ([]byte, error) {
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

// pathError is an error of a system call with the file it was about.
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string { return e.path + ": " + e.err.Error() }
func (e *pathError) Unwrap() error { return e.err }

// unlimited is how v1 spells "no limit", up to rounding by the kernel, and how "max" of v2
// is read.
const unlimited = math.MaxUint64

// number reads a file that holds one number. A file that is not there, or says "max" or
// something else that is no number, is the second argument.
func (s *scratch) number(path string, otherwise uint64) uint64 {
	text, err := s.read(path)
	if err != nil {
		return otherwise
	}
	n, ok := parseUint(bytes.TrimSpace(text))
	if !ok {
		return otherwise
	}
	return n
}

// pairs calls f with the key and the number of each line of a flat-keyed file.
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

// parseUint reads a decimal number without making a string of it.
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
