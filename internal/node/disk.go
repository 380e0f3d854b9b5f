package node

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// diskSize is the size of the file system that holds dir; 0 if dir is empty.
func diskSize(dir string) (int64, error) {
	if dir == "" {
		return 0, nil
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("read file system size of %s: %w", dir, err)
	}
	return int64(st.Blocks) * st.Bsize, nil
}
