package csi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	storagev1 "k8s.io/api/storage/v1"
)

const (
	noteFile = "vol_data.json"
	// draftFile becomes the note by a rename, so that there is never half a note.
	draftFile = ".vol_data.json.new"
)

// note is what the disk tells of a volume to whoever has to take it down.
type note struct {
	AttachmentID  string                        `json:"attachmentID,omitempty"`
	Driver        string                        `json:"driverName"`
	NodeName      string                        `json:"nodeName,omitempty"`
	SELinux       string                        `json:"seLinuxMountContext,omitempty"`
	Volume        string                        `json:"specVolID,omitempty"`
	Handle        string                        `json:"volumeHandle"`
	LifecycleMode storagev1.VolumeLifecycleMode `json:"volumeLifecycleMode,omitempty"`
}

// write puts the note into dir.
func (n note) write(dir string) error {
	var content bytes.Buffer
	if err := json.NewEncoder(&content).Encode(n); err != nil {
		return fmt.Errorf("encode volume data: %w", err)
	}
	path := filepath.Join(dir, noteFile)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content.Bytes()) {
		return nil
	}
	draft := filepath.Join(dir, draftFile)
	if err := os.WriteFile(draft, content.Bytes(), 0o640); err != nil {
		return fmt.Errorf("save volume data: %w", err)
	}
	if err := os.Rename(draft, path); err != nil {
		return fmt.Errorf("save volume data: %w", err)
	}
	return nil
}

// readNote returns the note in dir; ok is false where there is none.
func readNote(dir string) (n note, ok bool, err error) {
	path := filepath.Join(dir, noteFile)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return note{}, false, nil
	}
	if err != nil {
		return note{}, false, fmt.Errorf("read volume data: %w", err)
	}
	if err := json.Unmarshal(content, &n); err != nil {
		return note{}, false, said("failed to parse volume data file [%s]: %w", path, err)
	}
	if n.Driver == "" || n.Handle == "" {
		return note{}, false, said("volume data file [%s] names no driver or no volume", path)
	}
	return n, true, nil
}

// removeVolumeDir removes what was made for a driver at path, the note beside it, and the
// folder of both. It removes nothing while something is mounted at path, and nothing that
// is not ours: a folder that is not empty stays, with an error.
func (p *Plugin) removeVolumeDir(path string) error {
	mounted, err := p.deps.Mounts.Mounted(path)
	if err != nil {
		return err
	}
	if mounted {
		return fmt.Errorf("remove %s: something is mounted there", path)
	}
	dir := filepath.Dir(path)
	for _, name := range []string{path, filepath.Join(dir, draftFile), filepath.Join(dir, noteFile), dir} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
