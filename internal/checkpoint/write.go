package checkpoint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// envelope is the file's content. Data is kept raw so that the checksum covers the very
// bytes that are decoded.
type envelope struct {
	Checksum string          `json:"checksum"`
	Data     json.RawMessage `json:"data"`
}

// Write replaces the file at path with v as JSON. When it returns nil the new content
// survives a crash of the machine; when it fails, or the machine dies before it returns,
// the file holds the old content or the new, never a mix. Concurrent writers of one path
// do not corrupt it; the last to finish wins.
func Write(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode checkpoint %s: %w", path, err)
	}
	content, err := json.Marshal(envelope{Checksum: sum(data), Data: data})
	if err != nil {
		return fmt.Errorf("encode checkpoint %s: %w", path, err)
	}
	if err := Replace(path, content); err != nil {
		return fmt.Errorf("write checkpoint %s: %w", path, err)
	}
	return nil
}

// Remove deletes the file; it is no error if there is none.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove checkpoint: %w", err)
	}
	return syncDir(filepath.Dir(path))
}

// Replace is Write for a file whose format is not ours to choose: it has no checksum.
func Replace(path string, content []byte) error {
	dir := filepath.Dir(path)
	// The name begins with a dot so that code listing the directory passes over a file
	// that a crash left behind.
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone already once renamed
	if _, err := tmp.Write(content); err != nil {
		tmp.Close()
		return err
	}
	// Without this the rename may reach the disk before the content does.
	if err := tmp.Sync(); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes a rename or removal in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
