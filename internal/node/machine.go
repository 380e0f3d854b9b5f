package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Machine is the hardware and the operating system. It is read once: a change while the agent
// runs, such as a hot-plugged CPU, takes effect at the next start.
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

// ReadMachine reads /proc, /sys and /etc below root, which is "/" except in tests. CPUs and
// memory are required; other fields are empty if their files do not exist.
func ReadMachine(root string) (Machine, error) {
	r := reader{root}
	m := Machine{
		MachineID: r.readFirst("etc/machine-id", "var/lib/dbus/machine-id"),
		SystemUUID: r.readFirst("sys/class/dmi/id/product_uuid", "proc/device-tree/system-id",
			"proc/device-tree/vm,uuid", "etc/machine-id"),
		BootID:        r.readFirst("proc/sys/kernel/random/boot_id"),
		Kernel:        r.readFirst("proc/sys/kernel/osrelease"),
		OSImage:       osImage(r.readFirst("etc/os-release", "usr/lib/os-release")),
		Hugepages:     r.hugepages(),
		MaxPIDs:       r.maxPIDs(),
		UserNamespace: inUserNamespace(r.readFirst("proc/self/uid_map")),
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
		return Machine{}, errors.New("read machine: MemTotal is not in /proc/meminfo")
	}
	return m, nil
}

type reader struct{ root string }

// first returns the content of the first file that can be read and is not empty, without
// surrounding white space and the NUL at the end of device tree files.
func (r reader) readFirst(paths ...string) string {
	for _, p := range paths {
		if content, err := os.ReadFile(filepath.Join(r.root, p)); err == nil {
			if text := strings.Trim(string(content), " \t\r\n\x00"); text != "" {
				return text
			}
		}
	}
	return ""
}

// cpus counts the online CPUs.
func (r reader) cpus() (int, error) {
	if text := r.readFirst("sys/devices/system/cpu/online"); text != "" {
		return countRanges(text)
	}
	// A kernel without CPU hotplug has no such file, and all its CPUs are online.
	count := 0
	for line := range strings.Lines(r.readFirst("proc/cpuinfo")) {
		if strings.HasPrefix(line, "processor") {
			count++
		}
	}
	if count == 0 {
		return 0, errors.New("neither /sys/devices/system/cpu/online nor /proc/cpuinfo lists any")
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
			return 0, fmt.Errorf("parse CPU list %q: %w", list, err)
		}
		last, err := strconv.Atoi(to)
		if err != nil {
			return 0, fmt.Errorf("parse CPU list %q: %w", list, err)
		}
		if last < first {
			return 0, fmt.Errorf("parse CPU list %q: range %s is reversed", list, part)
		}
		count += last - first + 1
	}
	return count, nil
}

// meminfo returns the fields of /proc/meminfo, in bytes.
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
			return nil, fmt.Errorf("parse /proc/meminfo: %s: %w", name, err)
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
		count, err := strconv.ParseInt(r.readFirst(filepath.Join(dir, e.Name(), "nr_hugepages")), 10, 64)
		if err != nil {
			continue
		}
		pages[size*1024] = size * 1024 * count
	}
	return pages
}

// maxPIDs is the smaller of the kernel's two limits on the number of tasks; 0 if neither can
// be read.
func (r reader) maxPIDs() int64 {
	var least int64
	for _, file := range []string{"proc/sys/kernel/pid_max", "proc/sys/kernel/threads-max"} {
		if limit, err := strconv.ParseInt(r.readFirst(file), 10, 64); err == nil && (least == 0 || limit < least) {
			least = limit
		}
	}
	return least
}

// osImage returns PRETTY_NAME of an os-release file.
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

// inUserNamespace reports whether uidMap is other than the identity mapping of the initial
// user namespace.
func inUserNamespace(uidMap string) bool {
	fields := strings.Fields(uidMap)
	if len(fields) == 0 {
		return false
	}
	return !(len(fields) == 3 && fields[0] == "0" && fields[1] == "0" && fields[2] == "4294967295")
}
