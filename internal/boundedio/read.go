package boundedio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Limits in bytes.
const (
	// Small limits files that have a few lines, such as those of /proc and /sys.
	Small = 1 << 20
	// Document limits a configuration, an answer of a program or a state file. The state of a full node has
	// less than a tenth of it.
	Document = 32 << 20
)

// TooLargeError means that there is more to read than the reader accepts.
type TooLargeError struct {
	Name  string // of the file or stream
	Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("read %s: larger than %d bytes", e.Name, e.Limit)
}

// ErrNotRegular means that a path leads to a FIFO, a device or a directory.
var ErrNotRegular = errors.New("not a regular file")

// ReadFile reads a regular file of at most limit bytes. It does not block on a FIFO that someone has put
// in the file's place, and opens no device.
func ReadFile(path string, limit int64) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "read", Path: path, Err: ErrNotRegular} // not even opened, which may have effects
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "read", Path: path, Err: ErrNotRegular}
	}
	if info.Size() > limit {
		return nil, &TooLargeError{Name: path, Limit: limit}
	}
	return ReadAll(f, path, limit)
}

// ReadAll reads at most limit bytes. name is for the error if there is more.
func ReadAll(r io.Reader, name string, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, &TooLargeError{Name: name, Limit: limit}
	}
	return content, nil
}
