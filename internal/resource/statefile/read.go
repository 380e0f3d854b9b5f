package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Format is how a manager's state is encoded in its file.
type Format[S any] struct {
	Owner string // names the manager in errors
	// Decode's error wraps ErrCorrupt if the content is not valid.
	Decode func(raw []byte) (policy string, s S, err error)
}

// Read reads a state file. The error wraps ErrCorrupt if the content is not valid.
func (f Format[S]) Read(path string) (policy string, s S, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", s, fmt.Errorf("read %s state: %w", f.Owner, err)
	}
	return f.Decode(raw)
}

// Check returns an error if a state file exists and cannot be used. It changes nothing.
func (f Format[S]) Check(path string) error {
	_, _, err := f.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
