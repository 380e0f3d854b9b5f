package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// volume is the stored state of a volume.
type volume struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Capacity int64  `json:"capacity"`
	// Targets are the paths where it is published, Staged the path where it is staged. A path is
	// stored before the volume is mounted and removed after it is unmounted.
	Targets []string `json:"targets,omitempty"`
	Staged  string   `json:"staged,omitempty"`
	dir     string
}

// publishedElsewhere reports whether the volume is published at another path.
func (v *volume) publishedElsewhere(target string) bool {
	return slices.ContainsFunc(v.Targets, func(t string) bool { return t != target && mounted(t) })
}

// contentDir is the content of a volume without its own file system.
func (v *volume) contentDir() string { return filepath.Join(v.dir, "folder") }

// image is the disk image of a volume on a loop device.
func (v *volume) image() string { return filepath.Join(v.dir, "image") }

// store keeps volumes on disk, so that they survive a restart of the driver.
type store struct{ dir string }

var errUnknown = errors.New("no such volume")

// get finds a volume by its ID, or by a cloud driver's handle such as projects/P/zones/Z/disks/ID.
func (s store) get(id string) (*volume, error) {
	id = id[strings.LastIndex(id, "/")+1:]
	if id == "" || id == ".." || id == "." {
		return nil, errUnknown
	}
	dir := filepath.Join(s.dir, id)
	text, err := os.ReadFile(filepath.Join(dir, "volume.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errUnknown
	}
	if err != nil {
		return nil, err
	}
	v := &volume{dir: dir}
	return v, json.Unmarshal(text, v)
}

// put creates or updates the stored state of a volume.
func (s store) put(v *volume) error {
	v.dir = filepath.Join(s.dir, v.ID)
	if err := os.MkdirAll(v.contentDir(), 0o755); err != nil {
		return err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	// Atomic: the driver may be killed at any time.
	temporary := filepath.Join(v.dir, "volume.json.new")
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(v.dir, "volume.json"))
}

func (s store) delete(id string) error {
	v, err := s.get(id)
	if errors.Is(err, errUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(v.dir)
}
