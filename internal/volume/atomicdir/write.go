// Package atomicdir writes a set of files so that a reader sees all of the old or all of
// the new ones. Visible names are links through ..data to a folder named for its time,
// and an update changes that one link:
//
//	key        -> ..data/key
//	sub        -> ..data/sub
//	..data     -> ..2026_01_02_15_04_05.123456789
//
// The layout is the reference kubelet's, which programs in pods rely on: they watch ..data.
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

// File is one file to be written.
type File struct {
	Data []byte
	Mode int32
	// Owner is the user the file is given to, nil for root.
	Owner *int64
}

// Payload maps relative paths to files.
type Payload map[string]File

const (
	dataLink = "..data"
	tempLink = "..data_tmp"
)

// Write makes dir show exactly the payload. own, if given, sets owners and modes below dir;
// it is called after the new files exist and before they become visible. Where nothing
// differs nothing is written, so that watchers in the pod are not woken for nothing.
// Write may be repeated after a crash at any line. Calls for one dir must not overlap.
func Write(dir string, payload Payload, now time.Time, own func() error) error {
	payload, err := checked(payload)
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
	return sweep(dir, payload)
}

// swap writes the payload into a new folder and points the data link at it.
func swap(dir string, payload Payload, now time.Time, own func() error) error {
	fresh, err := os.MkdirTemp(dir, now.UTC().Format("..2006_01_02_15_04_05."))
	if err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	done := false
	defer func() {
		if !done {
			_ = os.RemoveAll(fresh) // a leftover is swept by the next write
		}
	}()
	if err := os.Chmod(fresh, 0o755); err != nil {
		return fmt.Errorf("open data folder to readers: %w", err)
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
		return fmt.Errorf("link new data: %w", err)
	}
	if err := os.Rename(temp, filepath.Join(dir, dataLink)); err != nil {
		return fmt.Errorf("show new data: %w", err)
	}
	done = true
	return nil
}

func writeFile(path string, file File) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make folder for file: %w", err)
	}
	mode := fileMode(file.Mode)
	if err := os.WriteFile(path, file.Data, mode); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	if file.Owner != nil {
		if err := os.Lchown(path, int(*file.Owner), -1); err != nil {
			return fmt.Errorf("give file to user %d: %w", *file.Owner, err)
		}
	}
	// After the change of owner, which clears set-id bits, and whatever the umask was.
	if err := os.Chmod(path, mode); err != nil {
		return fmt.Errorf("set mode of file: %w", err)
	}
	return nil
}

// fileMode is the permission part of mode; the upper bits of a Unix mode mean other
// things to os.FileMode.
func fileMode(mode int32) fs.FileMode { return fs.FileMode(mode) & fs.ModePerm }

// link makes the visible names that are missing.
func link(dir string, payload Payload) error {
	for path, file := range payload {
		name, _, _ := strings.Cut(path, "/")
		visible := filepath.Join(dir, name)
		if _, err := os.Lstat(visible); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("look at visible name: %w", err)
		}
		if err := os.Symlink(filepath.Join(dataLink, name), visible); err != nil {
			return fmt.Errorf("link visible name: %w", err)
		}
		if file.Owner != nil {
			if err := os.Lchown(visible, int(*file.Owner), -1); err != nil {
				return fmt.Errorf("give link to user %d: %w", *file.Owner, err)
			}
		}
	}
	return nil
}

// sweep removes data folders that are not the current one, and names that the payload does
// not have: what was just replaced, and what a crash left behind.
func sweep(dir string, payload Payload) error {
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

// unlink removes a visible name, which is told by where it leads: what else is in the
// volume, such as a mount point, is not ours.
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
