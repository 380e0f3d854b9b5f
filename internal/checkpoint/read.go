package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// Read's errors match one of these with errors.Is, unless the file could not be read at
// all (a permission, an I/O error), which is passed on as it is.
var (
	// ErrMissing: there is no such file, nothing was saved.
	ErrMissing = errors.New("no checkpoint")
	// ErrTorn: the file is not a whole checkpoint: it is truncated, empty or has another format.
	ErrTorn = errors.New("checkpoint is truncated or has another format")
	// ErrChecksum: the file is whole, but something other than Write has changed it.
	ErrChecksum = errors.New("checkpoint does not match its checksum")
)

// Read decodes the file at path into v, a pointer. It leaves v alone unless the checksum matches,
// and never changes the file: the caller decides what to do with a corrupt one.
func Read(path string, v any) error {
	content, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return fmt.Errorf("read checkpoint %s: %w", path, ErrMissing)
	}
	if err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	var e envelope
	if err := json.Unmarshal(content, &e); err != nil {
		return fmt.Errorf("read checkpoint %s: %w: %v", path, ErrTorn, err)
	}
	if e.Checksum == "" || e.Data == nil {
		return fmt.Errorf("read checkpoint %s: %w: no checksum or no data", path, ErrTorn)
	}
	if sum(e.Data) != e.Checksum {
		return fmt.Errorf("read checkpoint %s: %w", path, ErrChecksum)
	}
	if err := json.Unmarshal(e.Data, v); err != nil {
		return fmt.Errorf("decode checkpoint %s: %w", path, err)
	}
	return nil
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
