// Package atomicdir writes a set of files atomically: a reader sees either all old files or all new
// ones. Visible names are symbolic links through ..data to a timestamped directory, and an update
// changes that one link:
//
//	key        -> ..data/key
//	sub        -> ..data/sub
//	..data     -> ..2026_01_02_15_04_05.123456789
//
// The layout is that of the reference kubelet. Programs in pods rely on it: they watch ..data.
package atomicdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// File is one file to write.
type File struct {
	Data []byte
	Mode int32
	// Owner is the UID of the owner, nil for root.
	Owner *int64
}

// Payload maps relative paths to files.
type Payload map[string]File

// Size is the number of bytes of all files.
func (p Payload) Size() (bytes int64) {
	for _, file := range p {
		bytes += int64(len(file.Data))
	}
	return bytes
}

const (
	dataLink = "..data"
	tempLink = "..data_tmp"
)

// Write makes dir show exactly the payload. own, if given, sets owners and modes below dir; it is
// called after the new files exist and before they become visible. Unchanged content is not
// written, so that watchers in the pod are not woken. Write is idempotent, also after a crash at any
// line. Calls for one dir must not overlap.
func Write(dir string, payload Payload, now time.Time, own func() error) error {
	payload, err := cleanPayload(payload)
	if err != nil {
		return err
	}
	old, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read link of current data: %w", err)
	}
	same, err := compare(dir, old, payload)
	if err != nil {
		return err
	}
	if !same {
		if err := swap(dir, payload, now, own); err != nil {
			return err
		}
	}
	if err := link(dir, payload); err != nil {
		return err
	}
	return removeStale(dir, payload)
}

// swap writes the payload into a new directory and points the data link at it.
func swap(dir string, payload Payload, now time.Time, own func() error) error {
	fresh, err := os.MkdirTemp(dir, now.UTC().Format("..2006_01_02_15_04_05."))
	if err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	done := false
	defer func() {
		if !done {
			_ = os.RemoveAll(fresh) // else the next write removes it
		}
	}()
	if err := os.Chmod(fresh, 0o755); err != nil {
		return fmt.Errorf("set mode of data directory: %w", err)
	}
	for path, file := range payload {
		if err := writeFile(filepath.Join(fresh, path), file); err != nil {
			return err
		}
	}
	if own != nil {
		if err := own(); err != nil {
			return err
		}
	}
	temp := filepath.Join(dir, tempLink)
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove link left by a crash: %w", err)
	}
	if err := os.Symlink(filepath.Base(fresh), temp); err != nil {
		return fmt.Errorf("create link to new data: %w", err)
	}
	if err := os.Rename(temp, filepath.Join(dir, dataLink)); err != nil {
		return fmt.Errorf("replace link to current data: %w", err)
	}
	done = true
	return nil
}

func writeFile(path string, file File) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create directory of file: %w", err)
	}
	mode := fileMode(file.Mode)
	if err := os.WriteFile(path, file.Data, mode); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	if file.Owner != nil {
		if err := os.Lchown(path, int(*file.Owner), -1); err != nil {
			return fmt.Errorf("change owner of file to %d: %w", *file.Owner, err)
		}
	}
	// After chown, which clears set-id bits, and regardless of the umask.
	if err := os.Chmod(path, mode); err != nil {
		return fmt.Errorf("set mode of file: %w", err)
	}
	return nil
}

// fileMode is the permission part of mode; os.FileMode gives the other bits another meaning.
func fileMode(mode int32) fs.FileMode { return fs.FileMode(mode) & fs.ModePerm }

// link creates missing visible names.
func link(dir string, payload Payload) error {
	for path, file := range payload {
		name, _, _ := strings.Cut(path, "/")
		visible := filepath.Join(dir, name)
		if _, err := os.Lstat(visible); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("stat visible name: %w", err)
		}
		if err := os.Symlink(filepath.Join(dataLink, name), visible); err != nil {
			return fmt.Errorf("create visible name: %w", err)
		}
		if file.Owner != nil {
			if err := os.Lchown(visible, int(*file.Owner), -1); err != nil {
				return fmt.Errorf("change owner of link to %d: %w", *file.Owner, err)
			}
		}
	}
	return nil
}

// removeStale removes data directories other than the current one, and visible names that the payload
// does not have: those that were just replaced, and those that a crash has left.
func removeStale(dir string, payload Payload) error {
	current, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil {
		return fmt.Errorf("read link of current data: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list volume: %w", err)
	}
	names := map[string]bool{}
	for path := range payload {
		name, _, _ := strings.Cut(path, "/")
		names[name] = true
	}
	for _, e := range entries {
		if e.Type() == fs.ModeSymlink && !names[e.Name()] {
			if err := unlink(dir, e.Name()); err != nil {
				return err
			}
		}
		if !e.IsDir() || !strings.HasPrefix(e.Name(), "..") || e.Name() == current {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("remove outdated data: %w", err)
		}
	}
	return nil
}

// unlink removes a visible name, recognized by its target. Anything else in the volume, such as a
// mount point, stays.
func unlink(dir, name string) error {
	visible := filepath.Join(dir, name)
	if target, err := os.Readlink(visible); err != nil || target != filepath.Join(dataLink, name) {
		return nil
	}
	if err := os.Remove(visible); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove outdated name: %w", err)
	}
	return nil
}
