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

const volumeDataFile = "vol_data.json"

// maxVolumeData bounds the size that is read. Handles and names have at most a few hundred bytes.
const maxVolumeData = 1 << 20

// volumeData is stored on disk for the teardown of a volume.
type volumeData struct {
	AttachmentID  string                        `json:"attachmentID,omitempty"`
	Driver        string                        `json:"driverName"`
	NodeName      string                        `json:"nodeName,omitempty"`
	SELinux       string                        `json:"seLinuxMountContext,omitempty"`
	Volume        string                        `json:"specVolID,omitempty"`
	Handle        string                        `json:"volumeHandle"`
	LifecycleMode storagev1.VolumeLifecycleMode `json:"volumeLifecycleMode,omitempty"`
}

// write stores the volume data in dir and syncs it: the driver could not tear down a volume whose
// data a crash of the machine has left empty.
func (n volumeData) write(dir string) error {
	var content bytes.Buffer
	if err := json.NewEncoder(&content).Encode(n); err != nil {
		return fmt.Errorf("encode volume data: %w", err)
	}
	path := filepath.Join(dir, volumeDataFile)
	if old, err := readSmallFile(path); err == nil && bytes.Equal(old, content.Bytes()) {
		return nil
	}
	if err := checkpoint.Replace(path, content.Bytes(), 0o640); err != nil {
		return fmt.Errorf("save volume data: %w", err)
	}
	return nil
}

// readVolumeData reads the volume data in dir; ok is false if there is none. It logs an unreadable
// file; the caller falls back to the mount table.
func (p *Plugin) readVolumeData(dir string) (n volumeData, ok bool, err error) {
	path := filepath.Join(dir, volumeDataFile)
	content, err := readSmallFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.readErrors.forget(path)
		return volumeData{}, false, nil
	case err != nil:
		err = errorf("failed to open volume data file [%s]: %w", path, err)
	default:
		if err = json.Unmarshal(content, &n); err != nil {
			err = errorf("failed to parse volume data file [%s]: %w", path, err)
		} else if n.Driver == "" || n.Handle == "" {
			err = errorf("volume data file [%s] has no driver name or volume handle", path)
		}
	}
	if err != nil {
		if p.readErrors.changed(path, err) {
			p.deps.Log.Warn("csi: failed to read volume data", "path", path, "err", err)
		}
		return volumeData{}, false, err
	}
	p.readErrors.forget(path)
	return n, true, nil
}

// readSmallFile reads a file of limited size and does not block on a FIFO.
func readSmallFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxVolumeData))
}

// loggedErrors are the last logged errors by file.
type loggedErrors struct {
	mu   sync.Mutex
	last map[string]string
}

// changed records the error and reports whether it differs from the last one of the file.
func (c *loggedErrors) changed(path string, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[string]string{}
	}
	before := c.last[path]
	c.last[path] = err.Error()
	return before != err.Error()
}

func (c *loggedErrors) forget(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, path)
}

// removeVolumeDir removes the driver's directory at path, the volume data next to it, and the parent
// of both. It fails if something is mounted at path or a directory has other files.
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
	files, err := checkpoint.Files(filepath.Join(dir, volumeDataFile))
	if err != nil {
		return err
	}
	for _, name := range files { // one may be a directory
		if err := safepath.RemoveAll(name); err != nil {
			return err
		}
	}
	p.readErrors.forget(filepath.Join(dir, volumeDataFile))
	return remove(dir)
}

// remove removes a file or an empty directory, if it exists.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
