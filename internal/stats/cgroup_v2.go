package stats

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"time"
)

// v2Reader reads cgroup v2.
type v2Reader struct {
	mount   string
	machine Machine
}

func (r v2Reader) dir(path string) string {
	if path == "/" {
		return r.mount
	}
	return r.mount + path
}

func (r v2Reader) read(s *fileReader, path string, d depth) (usage, error) {
	u := usage{path: path}
	dir := r.dir(path)
	if err := r.readCPU(s, dir, &u, d); err != nil {
		return usage{}, err
	}
	if err := r.readMemory(s, dir, &u, d); err != nil {
		return usage{}, err
	}
	if d == deep {
		u.tasks.threads = s.number(dir+"/pids.current", 0)
		u.tasks.maxThreads = s.number(dir+"/pids.max", 0)
		u.devices = readDeviceIOv2(s, dir)
	}
	if d >= summary {
		readTasks(s, dir+"/cgroup.procs", &u.tasks, d)
	}
	u.pressure = readPressure(s, dir)
	u.derive(r.machine)
	return u, nil
}

func (r v2Reader) memory(s *fileReader, path string) (memoryUsage, error) {
	u := usage{path: path}
	err := r.readMemory(s, r.dir(path), &u, shallow)
	u.derive(r.machine)
	return u.memory, err
}

func (r v2Reader) readCPU(s *fileReader, dir string, u *usage, d depth) error {
	const micro = uint64(time.Microsecond)
	text, err := s.read(dir + "/cpu.stat")
	if err != nil {
		return err
	}
	pairs(text, func(key []byte, value uint64) {
		switch string(key) {
		case "usage_usec":
			u.cpu.total = value * micro
		case "user_usec":
			u.cpu.user = value * micro
		case "system_usec":
			u.cpu.system = value * micro
		case "nr_periods":
			u.cpu.periods = value
		case "nr_throttled":
			u.cpu.throttledPeriods = value
		case "throttled_usec":
			u.cpu.throttledTime = value * micro
		case "nr_bursts":
			u.cpu.burstPeriods = value
		case "burst_usec":
			u.cpu.burstTime = value * micro
		}
	})
	if d != deep {
		return nil
	}
	if weight := s.number(dir+"/cpu.weight", 0); weight > 0 {
		u.cpu.shares = sharesOf(weight)
	}
	if text, err = s.read(dir + "/cpu.max"); err == nil { // "max 100000", or "50000 100000"
		quota, period, _ := bytes.Cut(bytes.TrimSpace(text), []byte{' '})
		u.cpu.quota, _ = parseUint(quota)
		u.cpu.period, _ = parseUint(period)
	}
	return nil
}

// sharesOf converts a weight (1 to 10000) back to the shares (2 to 262144) it came from.
func sharesOf(weight uint64) uint64 {
	return 2 + (min(max(weight, 1), 10000)-1)*262142/9999
}

func (r v2Reader) readMemory(s *fileReader, dir string, u *usage, d depth) error {
	m := &u.memory
	text, err := s.read(dir + "/memory.stat")
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && u.path != "/" {
			if _, statErr := os.Stat(dir); statErr != nil {
				return err
			}
			return nil // the cgroup has no memory controller
		}
		return err
	}
	pairs(text, m.setFromV2Stat)
	m.limit = s.number(dir+"/memory.max", unlimited)
	m.swapLimit = s.number(dir+"/memory.swap.max", unlimited)
	m.reservation, m.memswLimit = unlimited, unlimited
	m.swap = s.number(dir+"/memory.swap.current", 0)
	m.usage = s.number(dir+"/memory.current", 0)
	if u.path == "/" { // the root has neither file
		m.usage, m.swap = readMeminfo(s)
	}
	if d != deep {
		return nil
	}
	m.reservation = s.number(dir+"/memory.min", 0)
	m.peak = s.number(dir+"/memory.peak", 0)
	if text, err = s.read(dir + "/memory.events"); err == nil {
		pairs(text, func(key []byte, value uint64) {
			switch string(key) {
			case "high":
				m.eventsHigh = value
			case "max":
				m.eventsMax, m.hitLimit = value, value
			case "oom_kill":
				m.ooms = value
			}
		})
	}
	return nil
}

// setFromV2Stat sets a field from one line of v2's memory.stat, which includes the descendants.
func (m *memoryUsage) setFromV2Stat(key []byte, value uint64) {
	switch string(key) {
	case "pgfault":
		m.pgfault, m.ownPgfault = value, value
	case "pgmajfault":
		m.pgmajfault, m.ownPgmajfault = value, value
	case "file":
		m.cache = value
	case "anon":
		m.rss = value
	case "kernel":
		m.kernel = value
	case "file_mapped":
		m.mapped = value
	case "active_file":
		m.activeFile = value
	case "inactive_file":
		m.inactiveFile = value
	case "file_dirty":
		m.dirty = value
	case "file_writeback":
		m.writeback = value
	case "pgscan":
		m.pgscan = value
	case "pgsteal":
		m.pgsteal = value
	case "workingset_refault_file":
		m.refaultFile = value
	case "workingset_refault_anon":
		m.refaultAnon = value
	}
}
