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

// checked returns the payload under cleaned paths, or an error for one that could leave
// the volume or take a name of ours.
func checked(payload Payload) (Payload, error) {
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

// compare reads the current data folder (old, "" for none). It reports whether the folder
// holds the payload and no more.
func compare(dir, old string, payload Payload) (same bool, err error) {
	if old == "" {
		return false, nil
	}
	wanted := map[string]bool{} // every wanted file and the folders above it
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
		return false, nil // the link leads nowhere: write anew
	}
	if err != nil {
		return false, fmt.Errorf("read current data: %w", err)
	}
	if extra {
		return false, nil
	}
	for p, file := range payload {
		// A folder in the place of a file, or the reverse, differs as well.
		if !holds(filepath.Join(root, p), file.Data) {
			return false, nil
		}
	}
	return true, nil
}

// holds reports whether there is a file with just this content. No more is read than belongs
// there.
func holds(path string, content []byte) bool {
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
