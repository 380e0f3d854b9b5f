package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Machine is what the kernel says of the machine. It is read once: what changes while the
// agent runs (hot-plugged CPUs) is taken up by a restart, as pods' shares depend on it.
type Machine struct {
	CPUs          int
	MemoryBytes   int64
	SwapBytes     int64
	Hugepages     map[int64]int64 // bytes reserved, by page size in bytes
	MaxPIDs       int64
	MachineID     string
	SystemUUID    string
	BootID        string
	Kernel        string
	OSImage       string
	UserNamespace bool
}

// ReadMachine reads the machine from /proc, /sys and /etc below root ("/" but in tests).
// Only the amounts are required; an identity that the machine lacks stays empty.
func ReadMachine(root string) (Machine, error) {
	r := reader{root}
	m := Machine{
		MachineID: r.first("etc/machine-id", "var/lib/dbus/machine-id"),
		SystemUUID: r.first("sys/class/dmi/id/product_uuid", "proc/device-tree/system-id",
			"proc/device-tree/vm,uuid", "etc/machine-id"),
		BootID:        r.first("proc/sys/kernel/random/boot_id"),
		Kernel:        r.first("proc/sys/kernel/osrelease"),
		OSImage:       osImage(r.first("etc/os-release", "usr/lib/os-release")),
		Hugepages:     r.hugepages(),
		MaxPIDs:       r.maxPIDs(),
		UserNamespace: inUserNamespace(r.first("proc/self/uid_map")),
	}
	var err error
	if m.CPUs, err = r.cpus(); err != nil {
		return Machine{}, fmt.Errorf("read machine: count CPUs: %w", err)
	}
	meminfo, err := r.meminfo()
	if err != nil {
		return Machine{}, fmt.Errorf("read machine: %w", err)
	}
	m.MemoryBytes, m.SwapBytes = meminfo["MemTotal"], meminfo["SwapTotal"]
	if m.MemoryBytes == 0 {
		return Machine{}, fmt.Errorf("read machine: MemTotal is not in /proc/meminfo")
	}
	return m, nil
}

type reader struct{ root string }

// first is the content of the first file that can be read and is not empty, without
// surrounding space and the NUL that device tree files end with.
func (r reader) first(paths ...string) string {
	for _, p := range paths {
		if content, err := os.ReadFile(filepath.Join(r.root, p)); err == nil {
			if text := strings.Trim(string(content), " \t\r\n\x00"); text != "" {
				return text
			}
		}
	}
	return ""
}

// cpus counts the CPUs that are online.
func (r reader) cpus() (int, error) {
	if text := r.first("sys/devices/system/cpu/online"); text != "" {
		return countRanges(text)
	}
	// A kernel without CPU hotplug has no such file, and all its CPUs are online.
	count := 0
	for line := range strings.Lines(r.first("proc/cpuinfo")) {
		if strings.HasPrefix(line, "processor") {
			count++
		}
	}
	if count == 0 {
		return 0, fmt.Errorf("neither sysfs nor /proc/cpuinfo tells")
	}
	return count, nil
}

// countRanges counts the members of a kernel list such as "0-3,8,10-11".
func countRanges(list string) (int, error) {
	count := 0
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		if err != nil {
			return 0, fmt.Errorf("list %q: %w", list, err)
		}
		last, err := strconv.Atoi(to)
		if err != nil {
			return 0, fmt.Errorf("list %q: %w", list, err)
		}
		if last < first {
			return 0, fmt.Errorf("list %q: range %s goes backwards", list, part)
		}
		count += last - first + 1
	}
	return count, nil
}

// meminfo gives /proc/meminfo in bytes.
func (r reader) meminfo() (map[string]int64, error) {
	content, err := os.ReadFile(filepath.Join(r.root, "proc/meminfo"))
	if err != nil {
		return nil, err
	}
	info := map[string]int64{}
	for line := range strings.Lines(string(content)) {
		name, rest, _ := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		amount, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("/proc/meminfo: %s: %w", name, err)
		}
		if len(fields) == 2 && fields[1] == "kB" {
			amount *= 1024
		}
		info[name] = amount
	}
	return info, nil
}

func (r reader) hugepages() map[int64]int64 {
	dir := "sys/kernel/mm/hugepages"
	entries, _ := os.ReadDir(filepath.Join(r.root, dir)) // no directory, no huge pages
	pages := map[int64]int64{}
	for _, e := range entries {
		text := strings.TrimSuffix(strings.TrimPrefix(e.Name(), "hugepages-"), "kB")
		size, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			continue
		}
		count, err := strconv.ParseInt(r.first(filepath.Join(dir, e.Name(), "nr_hugepages")), 10, 64)
		if err != nil {
			continue
		}
		pages[size*1024] = size * 1024 * count
	}
	return pages
}

// maxPIDs is the smaller of the kernel's two bounds on the number of tasks; 0 if neither
// can be read.
func (r reader) maxPIDs() int64 {
	var least int64
	for _, file := range []string{"proc/sys/kernel/pid_max", "proc/sys/kernel/threads-max"} {
		if limit, err := strconv.ParseInt(r.first(file), 10, 64); err == nil && (least == 0 || limit < least) {
			least = limit
		}
	}
	return least
}

// osImage finds the name that an os-release file gives for people to read.
func osImage(release string) string {
	if release == "" {
		return "Unknown"
	}
	for line := range strings.Lines(release) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(name, `"'`)
		}
	}
	return "Linux"
}

// inUserNamespace: outside of any, all ids map to themselves.
func inUserNamespace(uidMap string) bool {
	fields := strings.Fields(uidMap)
	if len(fields) == 0 {
		return false
	}
	return !(len(fields) == 3 && fields[0] == "0" && fields[1] == "0" && fields[2] == "4294967295")
}
