package stats

import (
	"bytes"
	"time"

	"swiftlet/internal/cgroup"
)

// v1Reader reads cgroup v1.
type v1Reader struct {
	hierarchy cgroup.Hierarchy
	machine   Machine
}

// nanosPerTick is the length of a tick: the kernel reports CPU time in hundredths of a second
// on every architecture.
const nanosPerTick = uint64(time.Second / 100)

func (r v1Reader) dir(path string) string { return r.hierarchy.Dir("memory", path) }

func (r v1Reader) read(s *fileReader, path string, d depth) (usage, error) {
	u := usage{path: path}
	if err := r.readCPU(s, &u, d); err != nil {
		return usage{}, err
	}
	if err := r.readMemory(s, &u, d); err != nil {
		return usage{}, err
	}
	if d == deep {
		pids := r.hierarchy.Dir("pids", path)
		u.tasks.threads = s.number(pids+"/pids.current", 0)
		u.tasks.maxThreads = s.number(pids+"/pids.max", 0)
		u.devices = readDeviceIOv1(s, r.hierarchy, path)
	}
	if d >= summary {
		readTasks(s, r.dir(path)+"/cgroup.procs", &u.tasks, d)
	}
	u.derive(r.machine)
	return u, nil
}

func (r v1Reader) memory(s *fileReader, path string) (memoryUsage, error) {
	u := usage{path: path}
	err := r.readMemory(s, &u, shallow)
	u.derive(r.machine)
	return u.memory, err
}

func (r v1Reader) readCPU(s *fileReader, u *usage, d depth) error {
	dir := r.hierarchy.Dir("cpuacct", u.path)
	text, err := s.read(dir + "/cpuacct.usage")
	if err != nil {
		return err
	}
	u.cpu.total, _ = parseUint(bytes.TrimSpace(text))
	if d != deep {
		return nil
	}
	if text, err = s.read(dir + "/cpuacct.stat"); err == nil {
		pairs(text, func(key []byte, value uint64) {
			switch string(key) {
			case "user":
				u.cpu.user = value * nanosPerTick
			case "system":
				u.cpu.system = value * nanosPerTick
			}
		})
	}
	dir = r.hierarchy.Dir("cpu", u.path)
	if text, err = s.read(dir + "/cpu.stat"); err == nil {
		pairs(text, func(key []byte, value uint64) {
			switch string(key) {
			case "nr_periods":
				u.cpu.periods = value
			case "nr_throttled":
				u.cpu.throttledPeriods = value
			case "throttled_time":
				u.cpu.throttledTime = value
			case "nr_bursts":
				u.cpu.burstPeriods = value
			case "burst_time":
				u.cpu.burstTime = value
			}
		})
	}
	u.cpu.shares = s.number(dir+"/cpu.shares", 0)
	u.cpu.period = s.number(dir+"/cpu.cfs_period_us", 0)
	u.cpu.quota = s.number(dir+"/cpu.cfs_quota_us", 0) // -1 is "none" and parses as 0
	return nil
}

func (r v1Reader) readMemory(s *fileReader, u *usage, d depth) error {
	dir, m := r.dir(u.path), &u.memory
	text, err := s.read(dir + "/memory.usage_in_bytes")
	if err != nil {
		return err
	}
	m.usage, _ = parseUint(bytes.TrimSpace(text))
	if text, err = s.read(dir + "/memory.stat"); err != nil {
		return err
	}
	pairs(text, m.setFromV1Stat)
	m.limit = s.number(dir+"/memory.limit_in_bytes", unlimited)
	m.memswLimit = s.number(dir+"/memory.memsw.limit_in_bytes", unlimited)
	m.swapLimit = unlimited
	if hasLimit(m.limit) && hasLimit(m.memswLimit) {
		m.swapLimit = m.memswLimit - min(m.memswLimit, m.limit)
	}
	if d != deep {
		return nil
	}
	m.reservation = s.number(dir+"/memory.soft_limit_in_bytes", unlimited)
	m.peak = s.number(dir+"/memory.max_usage_in_bytes", 0)
	m.kernel = s.number(dir+"/memory.kmem.usage_in_bytes", 0)
	m.hitLimit = s.number(dir+"/memory.failcnt", 0)
	if text, err = s.read(dir + "/memory.oom_control"); err == nil {
		pairs(text, func(key []byte, value uint64) {
			if string(key) == "oom_kill" {
				m.ooms = value
			}
		})
	}
	return nil
}

// setFromV1Stat sets a field from one line of v1's memory.stat. Keys that begin with total_
// include the descendants.
func (m *memoryUsage) setFromV1Stat(key []byte, value uint64) {
	switch string(key) {
	case "pgfault":
		m.ownPgfault = value
	case "pgmajfault":
		m.ownPgmajfault = value
	case "total_pgfault":
		m.pgfault = value
	case "total_pgmajfault":
		m.pgmajfault = value
	case "total_cache":
		m.cache = value
	case "total_rss":
		m.rss = value
	case "total_swap":
		m.swap = value
	case "total_mapped_file":
		m.mapped = value
	case "total_active_file":
		m.activeFile = value
	case "total_inactive_file":
		m.inactiveFile = value
	case "total_dirty":
		m.dirty = value
	case "total_writeback":
		m.writeback = value
	case "total_pgscan":
		m.pgscan = value
	case "total_pgsteal":
		m.pgsteal = value
	case "total_workingset_refault_file":
		m.refaultFile = value
	case "total_workingset_refault_anon":
		m.refaultAnon = value
	}
}
