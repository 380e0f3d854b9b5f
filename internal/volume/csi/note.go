package csi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
	storagev1 "k8s.io/api/storage/v1"

	"swiftlet/internal/checkpoint"
	"swiftlet/internal/volume/safepath"
)

const noteFile = "vol_data.json"

// maxNote bounds what is read of a note. Handles and names have at most a few hundred bytes.
const maxNote = 1 << 20

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

// write puts the note into dir, and waits until it is on the disk: a note that a crash of the
// machine left empty would keep the volume from being taken down by its driver.
func (n note) write(dir string) error {
	var content bytes.Buffer
	if err := json.NewEncoder(&content).Encode(n); err != nil {
		return fmt.Errorf("encode volume data: %w", err)
	}
	path := filepath.Join(dir, noteFile)
	if old, err := readBounded(path); err == nil && bytes.Equal(old, content.Bytes()) {
		return nil
	}
	if err := checkpoint.Replace(path, content.Bytes(), 0o640); err != nil {
		return fmt.Errorf("save volume data: %w", err)
	}
	return nil
}

// readNote returns the note in dir; ok is false where there is none. An error says that there
// is one of no use: the log names the file, and the caller goes on by what else the node shows.
func (p *Plugin) readNote(dir string) (n note, ok bool, err error) {
	path := filepath.Join(dir, noteFile)
	content, err := readBounded(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.unreadable.forget(path)
		return note{}, false, nil
	case err != nil:
		err = said("failed to open volume data file [%s]: %w", path, err)
	default:
		if err = json.Unmarshal(content, &n); err != nil {
			err = said("failed to parse volume data file [%s]: %w", path, err)
		} else if n.Driver == "" || n.Handle == "" {
			err = said("volume data file [%s] names no driver or no volume", path)
		}
	}
	if err != nil {
		if p.unreadable.changed(path, err) {
			p.deps.Log.Warn("read volume data failed", "path", path, "err", err)
		}
		return note{}, false, err
	}
	p.unreadable.forget(path)
	return n, true, nil
}

// readBounded reads a small file. What is not one is not waited for.
func readBounded(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxNote))
}

// complaints are the files that the log has named, with what was wrong with each.
type complaints struct {
	mu   sync.Mutex
	last map[string]string
}

// changed reports whether this is news of the file.
func (c *complaints) changed(path string, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[string]string{}
	}
	before := c.last[path]
	c.last[path] = err.Error()
	return before != err.Error()
}

func (c *complaints) forget(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, path)
}

// removeVolumeDir removes what was made for a driver at path, the note beside it, and the
// directory of both. It removes nothing while something is mounted at path, and nothing that
// is not ours: a directory that is not empty stays, with an error.
func (p *Plugin) removeVolumeDir(path string) error {
	mounted, err := p.deps.Mounts.Mounted(path)
	if err != nil {
		return err
	}
	if mounted {
		return fmt.Errorf("remove %s: something is mounted there", path)
	}
	dir := filepath.Dir(path)
	if err := remove(path); err != nil {
		return err
	}
	notes, err := checkpoint.Files(filepath.Join(dir, noteFile))
	if err != nil {
		return err
	}
	for _, name := range notes { // one may be a directory
		if err := safepath.RemoveAll(name); err != nil {
			return err
		}
	}
	p.unreadable.forget(filepath.Join(dir, noteFile))
	return remove(dir)
}

// remove removes a file or an empty directory, if it is there.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
