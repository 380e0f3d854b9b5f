package cgroup

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
)

// OwnMemoryLimit returns the memory limit of the cgroup of this process, in bytes: the lowest of its own
// and those of its ancestors, as the kernel enforces it. It returns zero if there is none.
func (h Hierarchy) OwnMemoryLimit() (uint64, error) {
	own, err := cgroups.ParseCgroupFile("/proc/self/cgroup")
	if err != nil {
		return 0, fmt.Errorf("read memory limit of this process: %w", err)
	}
	if h.Version == 2 {
		return lowestLimit(os.DirFS(h.Mounts[""]), own[""], "memory.max")
	}
	return lowestLimit(os.DirFS(h.Mounts["memory"]), own["memory"], "memory.limit_in_bytes")
}

// lowestLimit reads the file in the cgroup and its ancestors below root. A cgroup without the file has no
// limit: the root on v2, one outside of the mount, or one without the controller.
func lowestLimit(root fs.FS, cgroup, file string) (uint64, error) {
	lowest := uint64(math.MaxUint64)
	for dir := path.Clean("/" + cgroup); ; dir = path.Dir(dir) {
		text, err := fs.ReadFile(root, path.Join(".", dir, file))
		if err == nil {
			// v1 has a number close to the maximum of int64 for no limit.
			limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
			if err == nil && limit < math.MaxInt64/2 {
				lowest = min(lowest, limit)
			}
		}
		if dir == "/" {
			break
		}
	}
	if lowest == math.MaxUint64 {
		return 0, nil
	}
	return lowest, nil
}
