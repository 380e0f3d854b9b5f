package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Replaced has what Replace has replaced.
type Replaced struct {
	dir      string
	contents map[string][]byte // by name; nil for a file that did not exist
}

// Replace replaces the named files in dir by those in from. Certificates that the replaced authority has issued
// are issued again by Ensure. What it returns can put the files back, also after an error.
func Replace(dir, from string, names []string) (Replaced, error) {
	previous := Replaced{dir: dir, contents: map[string][]byte{}}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return previous, fmt.Errorf("replace keys: %w", err)
		}
		file := filepath.Join(dir, name)
		old, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return previous, fmt.Errorf("replace keys: %w", err)
		}
		previous.contents[name] = old
		if err := replaceFile(file, content, private); err != nil {
			return previous, err
		}
	}
	return previous, nil
}

// PutBack undoes Replace.
func (r Replaced) PutBack() error {
	var err error
	for name, content := range r.contents {
		file := filepath.Join(r.dir, name)
		if content == nil {
			err = errors.Join(err, os.Remove(file))
			continue
		}
		err = errors.Join(err, replaceFile(file, content, private))
	}
	return err
}
