// Package sample generates /sys trees of many kinds of machines for tests.
package sample

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/cpuset"

	"swiftlet/internal/resource/topology"
)

// Thread is one logical CPU.
type Thread struct {
	CPU, Socket, Core, Node, Cache int
	Offline                        bool
}

// Machine describes a machine.
type Machine struct {
	Name    string
	Threads []Thread
	// NodeMemory is each node's memory in bytes; a node needs no CPUs.
	NodeMemory map[int]uint64
	// Pages is each node's number of huge pages of 2 MiB.
	Pages map[int]int
	// NoNUMA omits all node files, NoCache all cache files.
	NoNUMA, NoCache bool
}

const gib = 1 << 30

// regular returns a machine whose parts of each level are equal. The ids of a core's threads
// differ by the number of cores, as with most firmware.
func regular(name string, sockets, nodesPerSocket, coresPerNode, threads, coresPerCache int) Machine {
	m := Machine{Name: name, NodeMemory: map[int]uint64{}}
	cores := sockets * nodesPerSocket * coresPerNode
	for t := range threads {
		for core := range cores {
			node := core / coresPerNode
			m.Threads = append(m.Threads, Thread{
				CPU: t*cores + core, Core: core % (cores / sockets), Node: node,
				Socket: node / nodesPerSocket, Cache: core / coresPerCache,
			})
			m.NodeMemory[node] = 8 * gib
		}
	}
	return m
}

// interleaved returns a machine whose CPU ids alternate between two sockets.
func interleaved(name string, coresPerSocket int) Machine {
	m := Machine{Name: name, NodeMemory: map[int]uint64{0: 16 * gib, 1: 16 * gib}}
	for cpu := range 4 * coresPerSocket {
		m.Threads = append(m.Threads, Thread{CPU: cpu, Socket: cpu % 2, Node: cpu % 2, Cache: cpu % 2, Core: cpu / 2 % coresPerSocket})
	}
	return m
}

// hybrid returns a machine with big cores of two threads and small ones of one.
func hybrid(name string, big, small int) Machine {
	m := Machine{Name: name, NodeMemory: map[int]uint64{0: 32 * gib}}
	for core := range big {
		m.Threads = append(m.Threads, Thread{CPU: 2 * core, Core: 4 * core}, Thread{CPU: 2*core + 1, Core: 4 * core})
	}
	for core := range small {
		m.Threads = append(m.Threads, Thread{CPU: 2*big + core, Core: 4*big + core})
	}
	return m
}

// offline sets CPUs offline.
func offline(m Machine, name string, cpus ...int) Machine {
	m.Name = name
	ids := cpuset.New(cpus...)
	for i := range m.Threads {
		m.Threads[i].Offline = ids.Contains(m.Threads[i].CPU)
	}
	return m
}

// All returns all sample machines.
func All() []Machine {
	memoryOnly := regular("4 NUMA nodes and one of memory only", 2, 2, 4, 2, 4)
	memoryOnly.NodeMemory[4] = 64 * gib
	hugePages := regular("2 sockets with huge pages", 2, 1, 8, 2, 8)
	hugePages.Pages = map[int]int{0: 512, 1: 256}
	noNUMA := regular("a kernel without NUMA", 1, 1, 4, 2, 4)
	noNUMA.NoNUMA = true
	noCache := regular("ARM without cache information", 1, 1, 8, 1, 8)
	noCache.NoCache = true
	return []Machine{
		regular("one-CPU VM", 1, 1, 1, 1, 1),
		regular("two-CPU VM", 1, 1, 2, 1, 1),
		regular("1 socket, SMT", 1, 1, 8, 2, 8),
		regular("1 socket, no SMT", 1, 1, 8, 1, 8),
		regular("2 sockets, 2 NUMA nodes, SMT", 2, 1, 10, 2, 10),
		interleaved("2 sockets, CPUs numbered in turn", 6),
		regular("4 sockets, 4 NUMA nodes", 4, 1, 4, 2, 4),
		regular("2 sockets with sub-NUMA clusters", 2, 2, 8, 2, 16),
		regular("AMD, L3 clusters of 4 cores", 1, 1, 16, 2, 4),
		regular("AMD, 2 sockets, 4 nodes each, L3 clusters of 3 cores", 2, 4, 6, 2, 3),
		hybrid("hybrid, 6 big and 8 small cores", 6, 8),
		offline(regular("", 2, 1, 4, 2, 4), "offline CPUs", 1, 6, 9),
		regular("4 threads to a core", 1, 2, 4, 4, 4),
		memoryOnly, hugePages, noNUMA, noCache,
	}
}

// Named returns the machine of this name.
func Named(t testing.TB, name string) Machine {
	t.Helper()
	for _, m := range All() {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("unknown sample machine %q", name)
	return Machine{}
}

// Read writes the machine's tree and reads its topology.
func (m Machine) Read(t testing.TB) *topology.Machine {
	t.Helper()
	sys := t.TempDir()
	m.Write(t, sys)
	machine, err := topology.Read(sys, 16*gib)
	if err != nil {
		t.Fatalf("%s: %v", m.Name, err)
	}
	return machine
}

// Write writes the machine's tree below sys.
func (m Machine) Write(t testing.TB, sys string) {
	t.Helper()
	put := func(name, format string, args ...any) {
		path := filepath.Join(sys, "devices/system", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, fmt.Appendf(nil, format+"\n", args...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("cpu/online", "%s", m.online(func(x Thread) bool { return true }))
	for _, x := range m.Threads {
		if !x.Offline {
			m.writeThread(x, put)
		}
	}
	if m.NoNUMA {
		return
	}
	nodes := cpuset.New()
	for id := range m.NodeMemory {
		nodes = nodes.Union(cpuset.New(id))
	}
	put("node/online", "%s", nodes)
	for _, id := range nodes.List() {
		m.writeNode(id, nodes, put)
	}
}

func (m Machine) writeThread(x Thread, put func(name, format string, args ...any)) {
	dir := fmt.Sprintf("cpu/cpu%d/", x.CPU)
	put(dir+"topology/physical_package_id", "%d", x.Socket)
	put(dir+"topology/core_id", "%d", x.Core)
	put(dir+"topology/thread_siblings_list", "%s", m.online(func(y Thread) bool { return x.Socket == y.Socket && x.Core == y.Core }))
	put(dir+"topology/core_siblings_list", "%s", m.online(func(y Thread) bool { return x.Socket == y.Socket }))
	if m.NoCache {
		return
	}
	put(dir+"cache/index0/level", "1")
	put(dir+"cache/index0/shared_cpu_list", "%d", x.CPU)
	put(dir+"cache/index3/level", "3")
	put(dir+"cache/index3/shared_cpu_list", "%s", m.online(func(y Thread) bool { return x.Cache == y.Cache }))
}

func (m Machine) writeNode(id int, nodes cpuset.CPUSet, put func(name, format string, args ...any)) {
	dir := fmt.Sprintf("node/node%d/", id)
	put(dir+"cpulist", "%s", m.online(func(y Thread) bool { return y.Node == id }))
	put(dir+"meminfo", "Node %d MemTotal:       %d kB\nNode %d MemFree: 1 kB", id, m.NodeMemory[id]/1024, id)
	var distances []string
	for _, other := range nodes.List() {
		distance := 10
		if other != id {
			distance += 1 + 10*max(id-other, other-id)
		}
		distances = append(distances, fmt.Sprint(distance))
	}
	put(dir+"distance", "%s", strings.Join(distances, " "))
	put(dir+"hugepages/hugepages-2048kB/nr_hugepages", "%d", m.Pages[id])
}

// online returns the online CPUs that match.
func (m Machine) online(match func(Thread) bool) cpuset.CPUSet {
	var ids []int
	for _, x := range m.Threads {
		if !x.Offline && match(x) {
			ids = append(ids, x.CPU)
		}
	}
	return cpuset.New(ids...)
}
