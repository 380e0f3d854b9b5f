package logs

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"swiftlet/internal/pod"
)

// Usage returns the disk usage in bytes of the logs of all instances of a container.
func (r *Reader) Usage(ref pod.Ref, container string) (int64, error) {
	files, err := os.ReadDir(filepath.Join(r.dir, ref.LogDirName(), container))
	if err != nil {
		return 0, fmt.Errorf("read usage of container logs: %w", err)
	}
	var sum int64
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			continue // it was removed by a rotation
		}
		if sys, ok := info.Sys().(*syscall.Stat_t); ok {
			sum += sys.Blocks * 512
		}
	}
	return sum, nil
}
