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

// volume is what is kept of one volume beside its content.
type volume struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Capacity int64  `json:"capacity"`
	// Targets are where it is published, Staged where it is staged; each is noted before it
	// is done and forgotten after it is undone.
	Targets []string `json:"targets,omitempty"`
	Staged  string   `json:"staged,omitempty"`
	dir     string
}

// elsewhere reports whether it is published at another place.
func (v *volume) elsewhere(target string) bool {
	return slices.ContainsFunc(v.Targets, func(t string) bool { return t != target && mounted(t) })
}

// folder is the content of a volume without a file system of its own.
func (v *volume) folder() string { return filepath.Join(v.dir, "folder") }

// image is the content of a volume on a loop device.
func (v *volume) image() string { return filepath.Join(v.dir, "image") }

// store keeps volumes on the disk: a driver that is killed knows them again.
type store struct{ dir string }

var errUnknown = errors.New("no such volume")

// get finds a volume by its ID. Drivers of clouds know theirs by longer handles too, such as
// projects/P/zones/Z/disks/ID.
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

// put makes the volume, or changes what is kept of it.
func (s store) put(v *volume) error {
	v.dir = filepath.Join(s.dir, v.ID)
	if err := os.MkdirAll(v.folder(), 0o755); err != nil {
		return err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	// Killed at any moment, the driver finds the old or the new.
	draft := filepath.Join(v.dir, "volume.json.new")
	if err := os.WriteFile(draft, text, 0o600); err != nil {
		return err
	}
	return os.Rename(draft, filepath.Join(v.dir, "volume.json"))
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
