package stats

import (
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/cgroup"
)

// depth is how much of a group is read.
type depth int

const (
	shallow depth = iota // CPU time and memory
	summary              // and what the Summary API tells
	deep                 // and all there is
)

// usage is what the kernel says of one group.
type usage struct {
	path    string
	at      time.Time
	created time.Time
	cores   uint64 // billionths of a CPU, lately

	cpu      cpuUsage
	memory   memoryUsage
	tasks    taskUsage
	pressure *pressure // nil where the kernel does not tell
}

// cpuUsage is in nanoseconds where it is time.
type cpuUsage struct {
	total, user, system                      uint64
	periods, throttledPeriods, throttledTime uint64
	burstPeriods, burstTime                  uint64
	shares, quota, period                    uint64 // quota 0: none
}

// memoryUsage is in bytes where it is memory.
type memoryUsage struct {
	usage, peak, kernel, workingSet       uint64
	limit, reservation                    uint64 // unlimited where there is none
	swap, swapLimit                       uint64
	cache, rss, mapped                    uint64
	activeFile, inactiveFile              uint64
	dirty, writeback                      uint64
	pgfault, pgmajfault                   uint64 // of the group and those below it
	ownPgfault, ownPgmajfault             uint64
	pgscan, pgsteal                       uint64
	refaultFile, refaultAnon              uint64
	hitLimit, eventsHigh, eventsMax, ooms uint64
	// memswLimit is v1's bound on memory and swap together.
	memswLimit uint64
}

// taskUsage tells of processes. Processes of groups further down are not in it.
type taskUsage struct {
	processes, files, sockets uint64
	threads, maxThreads       uint64 // maxThreads 0: no bound
	openFiles                 int64  // how many the first process may open; -1 unlimited
	first                     int    // a process of the group, 0 where there is none
}

// pressure is how long tasks were stalled.
type pressure struct{ cpu, memory, io statsapi.PSIStats }

// groupReader reads groups of one version of the tree.
type groupReader interface {
	// read reads the group with this path; one that is gone is an error.
	read(s *scratch, path string, d depth) (usage, error)
	// memory reads the memory of the group with this path, and nothing else.
	memory(s *scratch, path string) (memoryUsage, error)
	// dir is a directory of the group: the one that lists its processes.
	dir(path string) string
}

func newGroupReader(h cgroup.Hierarchy, m Machine) groupReader {
	if h.Version == 2 {
		return unifiedReader{mount: h.Mounts[""], machine: m}
	}
	return legacyReader{hierarchy: h, machine: m}
}

// settle derives what both versions derive alike.
func (u *usage) settle(m Machine) {
	mem := &u.memory
	if u.path == "/" { // the root has no limits but the machine's
		mem.limit, mem.swapLimit = m.Memory, m.Swap
		mem.reservation, mem.memswLimit = unlimited, unlimited
	}
	mem.workingSet = mem.usage - min(mem.usage, mem.inactiveFile)
}

// bounded tells a limit from the absence of one.
func bounded(limit uint64) bool { return limit <= 1<<62 }
