package runtime

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Paths of /proc and /sys that show or change the whole machine. The lists are those of the
// reference kubelet and of container runtimes.
var (
	maskedPaths = []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys",
		"/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug",
		"/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// procPaths returns the paths that a container must not see, and must not write.
func (r *Runtime) procPaths(mount *v1.ProcMountType) (masked, readonly []string) {
	if mount != nil && *mount == v1.UnmaskedProcMount {
		return nil, nil
	}
	return r.maskedPaths, readonlyPaths
}

// defaultMaskedPaths adds the thermal counters of this machine's CPUs: they leak the activity
// of other containers.
func defaultMaskedPaths(sysDir string) []string {
	const below = "devices/system/cpu/cpu[0-9]*/thermal_throttle"
	found, _ := filepath.Glob(filepath.Join(sysDir, below)) // the pattern is well formed
	slices.SortFunc(found, func(a, b string) int { return cmp.Compare(cpuNumber(a), cpuNumber(b)) })
	all := slices.Clone(maskedPaths)
	for _, path := range found {
		all = append(all, "/sys"+strings.TrimPrefix(path, strings.TrimSuffix(sysDir, "/")))
	}
	return all
}

func cpuNumber(path string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(path)), "cpu"))
	return n
}
