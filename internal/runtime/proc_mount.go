package runtime

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Parts of /proc and /sys that tell about, or act on, the whole machine. The lists are
// those the container world agreed on.
var (
	maskedPaths = []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys",
		"/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug",
		"/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// procPaths are what a container may not see and may not change.
func (r *Runtime) procPaths(mount *v1.ProcMountType) (masked, readonly []string) {
	if mount != nil && *mount == v1.UnmaskedProcMount {
		return nil, nil
	}
	return r.maskedPaths, readonlyPaths
}

// defaultMaskedPaths adds the thermal counters that this machine's processors show: they
// leak what neighbours do.
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
