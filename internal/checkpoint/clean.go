package checkpoint

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
)

// isTemporary matches the names of temporary files: see temporary and os.CreateTemp.
var isTemporary = regexp.MustCompile(`^\..+\.[0-9]+$`)

// Clean removes the temporary files that interrupted writes have left in a directory of the agent. Call it
// before the first write to the directory. A failure is logged: such files take space, and nothing else.
func Clean(dir string, log *slog.Logger) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("checkpoint: list temporary files failed", "err", err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !isTemporary.MatchString(e.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			log.Warn("checkpoint: remove temporary file failed", "err", err)
			continue
		}
		log.Info("checkpoint: removed temporary file of an interrupted write", "path", filepath.Join(dir, e.Name()))
	}
}
