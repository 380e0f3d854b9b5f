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
	if err := Replace(path, content, 0o600); err != nil {
		return fmt.Errorf("write checkpoint %s: %w", path, err)
	}
	return nil
}

// Remove deletes the file; it is no error if there is none.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove checkpoint: %w", err)
	}
	return syncDir(disk{}, filepath.Dir(path))
}
