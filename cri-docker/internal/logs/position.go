package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tailSize holds several of the longest lines, which have 16 KiB of text.
const tailSize = 256 << 10

// position says that the output file with Inode had Size bytes when all of the source before Source was
// converted. What the file has beyond Size was written later. Size is negative after a rotation, while output
// that the old file has is not converted again yet.
type position struct {
	Source int64  `json:"source"`
	Inode  uint64 `json:"inode"`
	Size   int64  `json:"size"`
	Done   bool   `json:"done"` // the container has ended and its whole log is converted
}

// readPosition returns false if none was saved.
func readPosition(file string) (position, bool, error) {
	var p position
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err != nil {
		return p, false, fmt.Errorf("read log position: %w", err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, false, fmt.Errorf("read log position: %s is damaged: %w", file, err)
	}
	if p.Source < 0 {
		return p, false, fmt.Errorf("read log position: %s is damaged: source is at %d", file, p.Source)
	}
	return p, true, nil
}

// save replaces the file atomically.
func (p position) save(file string) error {
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("save log position: %w", err)
	}
	next := file + ".next"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return fmt.Errorf("save log position: %w", err)
	}
	if err := os.Rename(next, file); err != nil {
		return fmt.Errorf("save log position: %w", err)
	}
	return nil
}

// written returns how many bytes of output exist beyond the position: in its file, which may have been
// renamed by a rotation, and in the file that replaced it. found is false if its file is gone.
func (p position) written(target string) (extra int64, found bool, err error) {
	current, err := stat(target)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return 0, false, fmt.Errorf("resume log: %w", err)
	}
	if err == nil && current.Ino == p.Inode {
		return max(0, current.Size-p.Size), true, nil
	}
	rotated, _ := filepath.Glob(escapeGlob(target) + ".*")
	for _, file := range rotated {
		if old, err := stat(file); err == nil && old.Ino == p.Inode {
			return max(0, old.Size-p.Size) + current.Size, true, nil
		}
	}
	return 0, false, nil
}

// lastTime is the time of the last complete line of a log, or zero.
func lastTime(target string) (time.Time, error) {
	f, err := os.Open(target)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("resume log: %w", err)
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return time.Time{}, fmt.Errorf("resume log: %w", err)
	}
	tail := make([]byte, min(end, tailSize))
	if _, err := f.ReadAt(tail, end-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return time.Time{}, fmt.Errorf("resume log: %w", err)
	}
	var last time.Time
	for line := range bytes.Lines(tail) {
		stamp, _, _ := bytes.Cut(line, []byte(" "))
		if at, err := time.Parse(time.RFC3339Nano, string(stamp)); err == nil && bytes.HasSuffix(line, []byte("\n")) {
			last = at
		}
	}
	return last, nil
}

func stat(file string) (unix.Stat_t, error) {
	var s unix.Stat_t
	err := unix.Lstat(file, &s)
	return s, err
}

// escapeGlob makes a path match only itself.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
