package stats

import (
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/cgroup"
)

// depth is how much of a cgroup is read.
type depth int

const (
	shallow depth = iota // CPU time and memory
	summary              // and what the Summary API needs
	deep                 // everything
)

// scope is what a reading covers.
type scope struct {
	depth
	// nodeOnly leaves out pods, which the runtime reports.
	nodeOnly bool
}

// usage is what the kernel reports for one cgroup.
type usage struct {
	path      string
	at        time.Time
	created   time.Time
	nanoCores uint64 // over the last seconds

	cpu      cpuUsage
	memory   memoryUsage
	tasks    taskUsage
	devices  []deviceIO
	pressure *pressure // nil if the kernel does not report it
}

// cpuUsage has times in nanoseconds.
type cpuUsage struct {
	total, user, system                      uint64
	periods, throttledPeriods, throttledTime uint64
	burstPeriods, burstTime                  uint64
	shares, quota, period                    uint64 // quota 0: none
}

// memoryUsage has amounts in bytes.
type memoryUsage struct {
	usage, peak, kernel, workingSet uint64
	limit, reservation              uint64 // unlimited if there is none
	swap, swapLimit                 uint64
	cache, rss, mapped              uint64
	activeFile, inactiveFile        uint64
	dirty, writeback                uint64
	// memswLimit is the limit of cgroup v1 on memory and swap together.
	memswLimit uint64
	pageCounters
	limitCounters
}

// pageCounters count the page faults and the page reclaim of a cgroup.
type pageCounters struct {
	pgfault, pgmajfault       uint64 // of the cgroup and its descendants
	ownPgfault, ownPgmajfault uint64
	pgscan, pgsteal           uint64
	refaultFile, refaultAnon  uint64
}

// limitCounters count how often a cgroup reached a limit.
type limitCounters struct {
	hitLimit, eventsHigh, eventsMax, ooms uint64
}

// taskUsage counts the processes of a cgroup, without those of its descendants.
type taskUsage struct {
	processes, files, sockets uint64
	threads, maxThreads       uint64 // maxThreads 0: no limit
	openFiles                 int64  // limit of the first process; -1 unlimited
	first                     int    // PID of a process of the cgroup, 0 if there is none
}

// pressure is how long tasks were stalled.
type pressure struct{ cpu, memory, io statsapi.PSIStats }

// groupReader reads cgroups of one version.
type groupReader interface {
	// read reads the cgroup with this path; it returns an error if that is gone.
	read(s *fileReader, path string, d depth) (usage, error)
	// memory reads only the memory of the cgroup with this path.
	memory(s *fileReader, path string) (memoryUsage, error)
	// dir is the directory of the cgroup that lists its processes.
	dir(path string) string
}

func newGroupReader(h cgroup.Hierarchy, m Machine) groupReader {
	if h.Version == 2 {
		return v2Reader{mount: h.Mounts[""], machine: m}
	}
	return v1Reader{hierarchy: h, machine: m}
}

// derive computes what both versions have in common.
func (u *usage) derive(m Machine) {
	mem := &u.memory
	if u.path == "/" { // the root has no limits but the size of the machine
		mem.limit, mem.swapLimit = m.Memory, m.Swap
		mem.reservation, mem.memswLimit = unlimited, unlimited
	}
	mem.workingSet = mem.usage - min(mem.usage, mem.inactiveFile)
}

// hasLimit reports whether a value is a limit, not "unlimited".
func hasLimit(limit uint64) bool { return limit <= 1<<62 }
