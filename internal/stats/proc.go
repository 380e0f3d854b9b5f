package stats

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// bootTime is when the kernel started.
func bootTime() (time.Time, error) {
	text, err := newFileReader().read("/proc/stat")
	if err != nil {
		return time.Time{}, fmt.Errorf("read boot time: %w", err)
	}
	var at uint64
	pairs(text, func(key []byte, value uint64) {
		if string(key) == "btime" {
			at = value
		}
	})
	if at == 0 {
		return time.Time{}, errors.New("read boot time: no btime in /proc/stat")
	}
	return time.Unix(int64(at), 0), nil
}

// readMeminfo returns the memory and swap in use on the whole machine.
func readMeminfo(s *fileReader) (used, swap uint64) {
	text, err := s.read("/proc/meminfo")
	if err != nil {
		return 0, 0
	}
	amounts := map[string]uint64{}
	for line := range bytes.Lines(text) {
		name, rest, _ := bytes.Cut(line, []byte{':'})
		if fields := bytes.Fields(rest); len(fields) > 0 {
			n, _ := parseUint(fields[0])
			amounts[string(name)] = n << 10
		}
	}
	used = amounts["MemTotal"] - min(amounts["MemTotal"], amounts["MemFree"])
	swap = amounts["SwapTotal"] - min(amounts["SwapTotal"], amounts["SwapFree"])
	return used, swap
}

// runningTasks returns the number of tasks on the machine, from the fourth field of /proc/loadavg.
func runningTasks(s *fileReader) (int64, error) {
	text, err := s.read("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	if fields := bytes.Fields(text); len(fields) >= 4 {
		if _, all, ok := bytes.Cut(fields[3], []byte{'/'}); ok {
			if n, ok := parseUint(all); ok {
				return int64(n), nil
			}
		}
	}
	return 0, fmt.Errorf("parse /proc/loadavg: unexpected content %q", text)
}

// topology counts the units that the CPUs are made of.
type topology struct{ nanoCores, sockets, books, drawers int }

// readTopology reads the topology from sysfs. Only mainframes have books and drawers.
func readTopology() topology {
	runtimeFs, err := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/topology")
	if err != nil || len(runtimeFs) == 0 {
		return topologyOf(readText("/proc/cpuinfo"))
	}
	seen := map[string]map[string]bool{"core": {}, "socket": {}, "book": {}, "drawer": {}}
	for _, dir := range runtimeFs {
		socket := readText(dir + "/physical_package_id")
		seen["socket"][socket] = true
		seen["core"][socket+"/"+readText(dir+"/core_id")] = true
		for _, kind := range []string{"book", "drawer"} {
			if id := readText(dir + "/" + kind + "_id"); id != "" && id != "-1" {
				seen[kind][id] = true
			}
		}
	}
	return topology{len(seen["core"]), len(seen["socket"]), len(seen["book"]), len(seen["drawer"])}
}

// topologyOf parses /proc/cpuinfo, for kernels without that part of sysfs.
func topologyOf(cpuinfo string) topology {
	cpus := 0
	for line := range strings.Lines(cpuinfo) {
		if strings.HasPrefix(line, "processor") {
			cpus++
		}
	}
	return topology{nanoCores: cpus, sockets: 1}
}

func readText(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// isGone reports whether a file vanished while it was read, which is not a failure.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || isNoDevice(err) }
