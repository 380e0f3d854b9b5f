package simulate

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/cgroup"
)

// kernel has the cgroups and mounts of the simulated machine. They survive the agent.
type kernel struct {
	mu      sync.Mutex
	cgroups map[types.UID]bool
	mounts  []mount // in the order in which they were mounted
}

type mount struct {
	path string
	kind int64 // magic number of the file system
}

func newKernel() *kernel { return &kernel{cgroups: map[types.UID]bool{}} }

// mountPoints lists the mounts at and below a directory.
func (k *kernel) mountPoints(dir string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for _, m := range k.mounts {
		if m.path == dir || strings.HasPrefix(m.path, dir+"/") {
			all = append(all, m.path)
		}
	}
	return all
}

func (k *kernel) podCgroups() []types.UID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.cgroups))
}

// podCgroups are the cgroups of pods as one run of the agent sees them.
type podCgroups struct{ run *run }

func (c podCgroups) EnsurePod(p *v1.Pod) error {
	return c.run.kernelCall("EnsurePod", p.Name, func() error {
		c.run.kernel.cgroups[p.UID] = true
		return nil
	})
}

func (c podCgroups) PodParent(p *v1.Pod) string { return "/kubepods/pod" + string(p.UID) }

// RemovePod kills what runs in the cgroup, as the kernel would.
func (c podCgroups) RemovePod(_ context.Context, uid types.UID) error {
	return c.run.kernelCall("RemovePod", string(uid), func() error {
		delete(c.run.kernel.cgroups, uid)
		return nil
	})
}

func (c podCgroups) Pods() ([]types.UID, error) { return c.run.kernel.podCgroups(), nil }

func (podCgroups) PodMemoryUsage(*v1.Pod) (uint64, error) { return 0, nil }
func (podCgroups) Kubepods() string                       { return "" }

// mounter mounts for one run of the agent. A tmpfs is a directory that is emptied when it is unmounted, and
// a bind mount an empty mark.
type mounter struct{ run *run }

func (m mounter) mount(call, path string, kind int64) error {
	return m.run.kernelCall(call, path, func() error {
		m.run.kernel.mounts = append(m.run.kernel.mounts, mount{path, kind})
		return nil
	})
}

func (m mounter) Tmpfs(dir string, _ int64) error { return m.mount("Tmpfs", dir, unix.TMPFS_MAGIC) }
func (m mounter) HugePages(dir, _ string) error {
	return m.mount("HugePages", dir, unix.HUGETLBFS_MAGIC)
}
func (m mounter) Bind(_ int, target string) error {
	return m.mount("Bind", target, unix.EXT4_SUPER_MAGIC)
}

func (m mounter) Mounted(path string) (bool, error) {
	return slices.Contains(m.run.kernel.mountPoints(path), path), nil
}

func (m mounter) FileSystem(path string) (int64, error) {
	m.run.kernel.mu.Lock()
	defer m.run.kernel.mu.Unlock()
	for _, one := range slices.Backward(m.run.kernel.mounts) {
		if path == one.path || strings.HasPrefix(path, one.path+"/") {
			return one.kind, nil
		}
	}
	return unix.EXT4_SUPER_MAGIC, nil
}

func (m mounter) Unmount(path string) error {
	return m.run.kernelCall("Unmount", path, func() error {
		k := m.run.kernel
		i := slices.IndexFunc(k.mounts, func(one mount) bool { return one.path == path })
		if i < 0 {
			return nil
		}
		if k.mounts[i].kind == unix.TMPFS_MAGIC {
			if err := empty(path); err != nil {
				return err
			}
		}
		k.mounts = slices.Delete(k.mounts, i, i+1)
		return nil
	})
}

func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // a file
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return errors.Join(errs...)
}

func (m mounter) ForceUnmount(path string) error { return m.Unmount(path) }

func (m mounter) MountPoints(dir string) ([]string, error) {
	all := m.run.kernel.mountPoints(dir)
	slices.SortStableFunc(all, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	return all, nil
}

func (m mounter) SameFilesystemMount(string, string) (string, error) { return "", nil }

func (m mounter) UnmountBeneath(dir string) error {
	var errs []error
	points, _ := m.MountPoints(dir)
	for _, path := range points {
		errs = append(errs, m.Unmount(path))
	}
	return errors.Join(errs...)
}

// hierarchy is a cgroup v1 tree with the files that the agent reads.
func hierarchy(dir string) (cgroup.Hierarchy, error) {
	for _, controller := range []string{"memory", "cpu"} {
		if err := os.MkdirAll(filepath.Join(dir, controller), 0o755); err != nil {
			return cgroup.Hierarchy{}, err
		}
	}
	files := map[string]string{
		"memory.usage_in_bytes": "1048576\n", "memory.limit_in_bytes": "9223372036854771712\n",
		"memory.stat": "total_inactive_file 0\ntotal_rss 4096\ntotal_pgfault 1\ntotal_pgmajfault 1\n", "memory.max_usage_in_bytes": "1048576\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, "memory", name), []byte(text), 0o644); err != nil {
			return cgroup.Hierarchy{}, err
		}
	}
	return cgroup.Hierarchy{Version: 1, Mounts: map[string]string{"memory": filepath.Join(dir, "memory"), "cpu": filepath.Join(dir, "cpu")}}, nil
}
