package checkpoint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// envelope is the content of the file. Data is raw so that the checksum covers the bytes that are
// decoded.
type envelope struct {
	Checksum string          `json:"checksum"`
	Data     json.RawMessage `json:"data"`
}

// Write replaces the file at path with v as JSON. When it returns nil the new content survives a
// crash of the machine. When it fails, or the machine crashes before it returns, the file has
// the old or the new content, never a mix. Concurrent writers of one path do not corrupt it; the
// last to finish wins.
func Write(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode checkpoint %s: %w", path, err)
	}
	content, err := json.Marshal(envelope{Checksum: sum(data), Data: data})
	if err != nil {
		return fmt.Errorf("encode checkpoint %s: %w", path, err)
	}
	if err := replace(disk{}, path, content, 0o600); err != nil {
		return fmt.Errorf("write checkpoint %s: %w", path, err)
	}
	return nil
}

// Remove deletes the file. A missing file is not an error.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove checkpoint: %w", err)
	}
	return syncDir(disk{}, filepath.Dir(path))
}
