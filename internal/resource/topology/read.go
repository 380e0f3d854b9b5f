package topology

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"
)

// maxID limits the ids of CPUs and nodes: far above the kernel's limit, and low enough that a
// list of them fits in memory.
const maxID = 1 << 16

// Read reads the machine's topology from sys, usually "/sys". memory is the machine's total
// memory, which kernels without NUMA do not report there.
func Read(sys string, memory uint64) (*Machine, error) {
	r := reader{filepath.Join(sys, "devices/system")}
	m := &Machine{CPUs: map[int]CPU{}}
	online, err := r.list("cpu/online")
	if err != nil {
		return nil, fmt.Errorf("read online CPUs: %w", err)
	}
	if online.IsEmpty() {
		return nil, errors.New("read online CPUs: there are none")
	}
	for _, id := range online.List() {
		if m.CPUs[id], err = r.cpu(id, online); err != nil {
			return nil, fmt.Errorf("read topology of CPU %d: %w", id, err)
		}
	}
	nodes, err := r.list("node/online")
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && nodes.IsEmpty(): // a kernel without NUMA
		m.Nodes = []Node{{Memory: memory}}
		m.Nodes[0].HugePages, err = r.hugePages("../../kernel/mm/hugepages")
		return m.index(), err
	case err != nil:
		return nil, fmt.Errorf("read online NUMA nodes: %w", err)
	}
	for _, id := range nodes.List() {
		if err := r.node(id, m); err != nil {
			return nil, fmt.Errorf("read NUMA node %d: %w", id, err)
		}
	}
	return m.index(), nil
}

type reader struct{ dir string }

// cpu reads one CPU. Without information from the kernel, it is the only one of its core and cache.
func (r reader) cpu(id int, online cpuset.CPUSet) (CPU, error) {
	dir := fmt.Sprintf("cpu/cpu%d/", id)
	c := CPU{ID: id, Core: id}
	var err error
	if c.Socket, err = r.numberOr(dir+"topology/physical_package_id", 0); err != nil {
		return c, err
	}
	c.Socket = max(c.Socket, 0) // the kernel reports -1 for unknown
	siblings, err := r.optionalList(dir + "topology/thread_siblings_list")
	if err != nil {
		return c, err
	}
	c.Core = lowestOr(siblings.Intersection(online), id)
	c.Cache, err = r.cache(dir, id, online)
	return c, err
}

// cache returns the lowest CPU that shares the last-level cache, if that is beyond the second
// level; otherwise the lowest CPU of the socket.
func (r reader) cache(dir string, id int, online cpuset.CPUSet) (int, error) {
	shared, deepest := cpuset.New(), 2
	indexes, err := filepath.Glob(filepath.Join(r.dir, dir, "cache/index*"))
	if err != nil {
		return 0, err
	}
	for _, index := range indexes {
		name := dir + "cache/" + filepath.Base(index)
		level, err := r.numberOr(name+"/level", 0)
		if err != nil {
			return 0, err
		}
		if level <= deepest {
			continue
		}
		if shared, err = r.optionalList(name + "/shared_cpu_list"); err != nil {
			return 0, err
		}
		deepest = level
	}
	if shared.IsEmpty() {
		if shared, err = r.optionalList(dir + "topology/core_siblings_list"); err != nil {
			return 0, err
		}
	}
	return lowestOr(shared.Intersection(online), id), nil
}

func (r reader) node(id int, m *Machine) error {
	dir := fmt.Sprintf("node/node%d/", id)
	cpus, err := r.optionalList(dir + "cpulist")
	if err != nil {
		return err
	}
	for _, cpu := range cpus.List() {
		if c, online := m.CPUs[cpu]; online {
			c.Node = id
			m.CPUs[cpu] = c
		}
	}
	n := Node{ID: id}
	if n.Distances, err = r.distances(dir + "distance"); err != nil {
		return err
	}
	if n.Memory, err = r.memory(dir + "meminfo"); err != nil {
		return err
	}
	if n.HugePages, err = r.hugePages(dir + "hugepages"); err != nil {
		return err
	}
	m.Nodes = append(m.Nodes, n)
	return nil
}

func (r reader) distances(name string) ([]uint64, error) {
	text, err := r.optional(name)
	if err != nil {
		return nil, err
	}
	var all []uint64
	for _, field := range strings.Fields(text) {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %q is not a distance", name, field)
		}
		all = append(all, n)
	}
	return all, nil
}

// memory parses the line "Node 0 MemTotal: 123 kB".
func (r reader) memory(name string) (uint64, error) {
	text, err := r.optional(name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if i := slices.Index(f, "MemTotal:"); i >= 0 && i+1 < len(f) {
			kib, err := strconv.ParseUint(f[i+1], 10, 54)
			if err != nil {
				return 0, fmt.Errorf("parse %s: %q is not an amount", name, f[i+1])
			}
			return kib * 1024, nil
		}
	}
	return 0, nil
}

// hugePages reads the directories "hugepages-2048kB".
func (r reader) hugePages(dir string) (map[uint64]uint64, error) {
	entries, err := os.ReadDir(filepath.Join(r.dir, dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	pages := map[uint64]uint64{}
	for _, e := range entries {
		kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(e.Name(), "hugepages-"), "kB"), 10, 54)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %q is not a page size", dir, e.Name())
		}
		n, err := r.numberOr(filepath.Join(dir, e.Name(), "nr_hugepages"), 0)
		if err != nil {
			return nil, err
		}
		pages[kib*1024] = uint64(max(n, 0))
	}
	return pages, nil
}

func (r reader) list(name string) (cpuset.CPUSet, error) {
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		return cpuset.New(), err
	}
	set, err := ParseList(strings.TrimSpace(string(text)))
	if err != nil {
		return set, fmt.Errorf("parse %s: %w", name, err)
	}
	return set, nil
}

func (r reader) optionalList(name string) (cpuset.CPUSet, error) {
	set, err := r.list(name)
	if errors.Is(err, fs.ErrNotExist) {
		return cpuset.New(), nil
	}
	return set, err
}

func (r reader) optional(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

func (r reader) numberOr(name string, otherwise int) (int, error) {
	text, err := r.optional(name)
	if err != nil || text == "" {
		return otherwise, err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("parse %s: %q is not a number", name, text)
	}
	return n, nil
}

// lowestOr returns the lowest member of the set, or otherwise if it is empty.
func lowestOr(set cpuset.CPUSet, otherwise int) int {
	if set.IsEmpty() {
		return otherwise
	}
	return set.List()[0]
}

// ParseList parses a list such as "0-3,8". Unlike cpuset.Parse it limits the ids, so that no
// input can exhaust the memory.
func ParseList(text string) (cpuset.CPUSet, error) {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == '-' }) {
		if n, err := strconv.Atoi(strings.TrimSpace(part)); err != nil || n < 0 || n >= maxID {
			return cpuset.New(), fmt.Errorf("parse list %q: %q is not a number from 0 to %d", text, part, maxID-1)
		}
	}
	set, err := cpuset.Parse(text)
	if err != nil {
		return cpuset.New(), fmt.Errorf("parse list %q: %w", text, err)
	}
	return set, nil
}
