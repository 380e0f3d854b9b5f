package atomicdir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	maxName = 255
	maxPath = 4096
)

// cleanPayload returns the payload with cleaned paths. It rejects a path that could leave the volume
// or has a reserved name.
func cleanPayload(payload Payload) (Payload, error) {
	clean := make(Payload, len(payload))
	for p, file := range payload {
		if err := checkPath(p); err != nil {
			return nil, err
		}
		clean[path.Clean(p)] = file
	}
	return clean, nil
}

func checkPath(p string) error {
	switch {
	case p == "":
		return fmt.Errorf("invalid path: must not be empty: %q", p)
	case path.IsAbs(p):
		return fmt.Errorf("invalid path: must be relative path: %s", p)
	case len(p) > maxPath:
		return fmt.Errorf("invalid path: must be less than or equal to %d characters", maxPath)
	}
	parts := strings.Split(p, "/")
	for _, part := range parts {
		if part == ".." {
			return fmt.Errorf("invalid path: must not contain '..': %s", p)
		}
		if len(part) > maxName {
			return fmt.Errorf("invalid path: filenames must be less than or equal to %d characters", maxName)
		}
	}
	if strings.HasPrefix(path.Clean(p), "..") {
		return fmt.Errorf("invalid path: must not start with '..': %s", p)
	}
	return nil
}

// compare reports whether the current data directory (old, "" for none) has exactly the payload.
func compare(dir, old string, payload Payload) (same bool, err error) {
	if old == "" {
		return false, nil
	}
	wanted := map[string]bool{} // the files and the directories above them
	for p := range payload {
		for ; p != "."; p = path.Dir(p) {
			wanted[p] = true
		}
	}
	root := filepath.Join(dir, old)
	extra := false
	err = filepath.WalkDir(root, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		if rel == "." || wanted[rel] {
			return nil
		}
		extra = true
		return fs.SkipAll
	})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // dangling link: write again
	}
	if err != nil {
		return false, fmt.Errorf("read current data: %w", err)
	}
	if extra {
		return false, nil
	}
	for p, file := range payload {
		// A directory in place of a file, or the reverse, is a difference as well.
		if !hasContent(filepath.Join(root, p), file.Data) {
			return false, nil
		}
	}
	return true, nil
}

// hasContent reports whether path is a file with exactly this content. It reads no more than that.
func hasContent(path string, content []byte) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(content)) {
		return false
	}
	got, err := io.ReadAll(io.LimitReader(f, int64(len(content))+1))
	return err == nil && bytes.Equal(got, content)
}
