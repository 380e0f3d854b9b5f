package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of CPU times in /proc. The kernel's interface has it fixed on all architectures
// that Go supports.
const tick = 10 * time.Millisecond

// ProcessCPU is the CPU time of a process with all its threads, also exited ones, and of children
// that it has waited for. The process's own part is exact to the nanosecond, that of its children to
// a tick.
func ProcessCPU(pid int) (time.Duration, error) {
	var own unix.Timespec
	// The clock ID of another process's CPU time: see clock_getcpuclockid(3).
	const scheduled = 2
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &own); err != nil {
		return 0, fmt.Errorf("read CPU time of process %d: %w", pid, err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time of children: %w", err)
	}
	children, err := childTicks(text)
	if err != nil {
		return 0, err
	}
	return time.Duration(own.Nano()) + time.Duration(children)*tick, nil
}

// childTicks returns cutime + cstime of a /proc/PID/stat.
func childTicks(stat []byte) (int64, error) {
	// The second field, the name in parentheses, may contain spaces.
	after := stat[bytes.LastIndexByte(stat, ')')+1:]
	fields := strings.Fields(string(after))
	const first, last = 13, 14 // fields 16 and 17, counted from the third
	if len(fields) <= last {
		return 0, fmt.Errorf("parse stat of a process: %d fields", len(fields))
	}
	sum := int64(0)
	for _, field := range fields[first : last+1] {
		value, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("parse stat of a process: %w", err)
		}
		sum += value
	}
	return sum, nil
}

// machineCPU is the time that all CPUs were busy since the boot.
func machineCPU() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read CPU time of the machine: %w", err)
	}
	return busyTime(text)
}

// busyTime adds the busy columns of the first line of /proc/stat: all but idle, iowait, and those
// of guests, which user time includes.
func busyTime(stat []byte) (time.Duration, error) {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("parse /proc/stat: %q", line)
	}
	sum := int64(0)
	for _, column := range []int{1, 2, 3, 6, 7} { // user, nice, system, irq, softirq
		value, err := strconv.ParseInt(fields[column], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("parse /proc/stat: %w", err)
		}
		sum += value
	}
	return time.Duration(sum) * tick, nil
}

// memory is the resident memory of a process in bytes.
type memory struct{ rss, anon, file int64 }

func processMemory(pid int) (memory, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, fmt.Errorf("read memory of process: %w", err)
	}
	var m memory
	for name, to := range map[string]*int64{"VmRSS": &m.rss, "RssAnon": &m.anon, "RssFile": &m.file} {
		kib, err := statusValue(text, name)
		if err != nil {
			return memory{}, err
		}
		*to = kib << 10
	}
	return m, nil
}

// wakeups is how often threads of a process have waited and were woken up. The counts of exited
// threads are lost; Go's runtime keeps its threads.
func wakeups(pid int) (int64, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("read wake-ups: process %d has no threads", pid)
	}
	sum := int64(0)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has exited
		}
		count, err := statusValue(text, "voluntary_ctxt_switches")
		if err != nil {
			return 0, err
		}
		sum += count
	}
	return sum, nil
}

// statusValue returns a number of a /proc/PID/status.
func statusValue(status []byte, name string) (int64, error) {
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		if key == name && len(fields) > 0 {
			return strconv.ParseInt(fields[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("parse status of a process: no %s", name)
}
