package bugreport

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"swiftlet/internal/boundedio"
)

const (
	cgroupMount = "/sys/fs/cgroup"
	maxCgroups  = 5000
)

// cgroupFiles are those of both versions whose values are kept.
var cgroupFiles = strings.Fields(`cgroup.controllers cgroup.subtree_control cgroup.events cgroup.freeze
	memory.current memory.peak memory.min memory.low memory.high memory.max memory.swap.current memory.swap.max memory.events memory.pressure memory.oom.group
	cpu.weight cpu.max cpu.stat cpu.pressure cpuset.cpus cpuset.mems cpuset.cpus.effective pids.current pids.max pids.events io.max io.pressure
	memory.usage_in_bytes memory.max_usage_in_bytes memory.limit_in_bytes memory.memsw.limit_in_bytes memory.failcnt memory.oom_control
	cpu.shares cpu.cfs_quota_us cpu.cfs_period_us cpuacct.usage hugetlb.2MB.current hugetlb.2MB.max`)

// cgroups lists the values of the pods' cgroups. On cgroup v1 each controller has them.
func (c *collector) cgroups(ctx context.Context) (string, error) {
	var b strings.Builder
	count := 0
	for _, pattern := range []string{"kubepods*", "*/kubepods*"} {
		// With cgroup v1 the controller comes before the kubelet's cgroup.
		controller, name := filepath.Split(pattern)
		tops, err := filepath.Glob(filepath.Join(cgroupMount, controller, c.settings.cgroupRoot, name))
		if err != nil {
			return "", err
		}
		for _, top := range tops {
			err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
				if errors.Is(err, fs.ErrNotExist) || err == nil && !d.IsDir() {
					return nil // a pod has ended
				}
				if err == nil {
					err = ctx.Err()
				}
				if count++; err == nil && count > maxCgroups {
					err = fmt.Errorf("more than %d cgroups", maxCgroups)
				}
				if err == nil {
					writeCgroup(&b, path)
				}
				return err
			})
			if err != nil {
				return b.String(), err
			}
		}
	}
	if count == 0 {
		return "", fmt.Errorf("no cgroup kubepods below %s%s", cgroupMount, c.settings.cgroupRoot)
	}
	return b.String(), nil
}

func writeCgroup(b *strings.Builder, dir string) {
	fmt.Fprintf(b, "%s\n", strings.TrimPrefix(dir, cgroupMount))
	for _, name := range cgroupFiles {
		if text, err := boundedio.ReadFile(filepath.Join(dir, name), boundedio.Small); err == nil {
			fmt.Fprintf(b, "  %s: %s\n", name, strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", ", "))
		}
	}
}
