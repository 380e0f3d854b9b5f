package topology_test

import (
	"os"
	"path/filepath"
	"testing"

	"swiftlet/internal/resource/topology"
	"swiftlet/internal/resource/topology/sample"
)

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name                                string
		cpus, sockets, nodes, caches, cores int
	}{
		{"one-CPU VM", 1, 1, 1, 1, 1},
		{"1 socket, SMT", 16, 1, 1, 1, 8},
		{"2 sockets with sub-NUMA clusters", 64, 2, 4, 2, 32},
		{"AMD, L3 clusters of 4 cores", 32, 1, 1, 4, 16},
		{"AMD, 2 sockets, 4 nodes each, L3 clusters of 3 cores", 96, 2, 8, 16, 48},
		{"hybrid, 6 big and 8 small cores", 20, 1, 1, 1, 14},
		{"offline CPUs", 13, 2, 2, 2, 7},
		{"4 NUMA nodes and one of memory only", 32, 2, 4, 4, 16},
		{"a kernel without NUMA", 8, 1, 1, 1, 4},
		{"ARM without cache information", 8, 1, 1, 1, 8},
	} {
		m := sample.Named(t, c.name).Read(t)
		got := []int{len(m.CPUs), m.Count(topology.BySocket), m.Count(topology.ByNode), m.Count(topology.ByCache), m.Count(topology.ByCore)}
		for i, want := range []int{c.cpus, c.sockets, c.nodes, c.caches, c.cores} {
			if got[i] != want {
				t.Errorf("%s: CPUs, sockets, nodes, caches, cores: %v, want %d in place %d", c.name, got, want, i)
			}
		}
	}
	far := sample.Named(t, "4 NUMA nodes and one of memory only").Read(t)
	if n := far.Nodes; len(n) != 5 || n[4].Memory != 64<<30 || n[4].Distances[3] != 21 || n[0].Memory != 8<<30 {
		t.Errorf("nodes: %+v", n)
	}
	if n := sample.Named(t, "2 sockets with huge pages").Read(t).Nodes; n[1].HugePages[2<<20] != 256 {
		t.Errorf("huge pages: %+v", n)
	}
	if n := sample.Named(t, "a kernel without NUMA").Read(t).Nodes; len(n) != 1 || n[0].Memory != 16<<30 {
		t.Errorf("without NUMA: %+v", n)
	}
	m := sample.Named(t, "offline CPUs").Read(t)
	if whole := m.Expand(m.Parts(m.All(), topology.ByCore)[0], topology.ByCore); whole.String() != "0,8" {
		t.Errorf("core of CPU 0: %s", whole)
	}
	if m.CPUs[5].Core != 5 || m.CPUs[13].Core != 5 || m.CPUs[2].Core != 2 {
		t.Errorf("cores: %+v", m.CPUs)
	}
}

func TestReadThisMachine(t *testing.T) {
	if _, err := topology.Read("/sys", 1<<30); err != nil {
		t.Error(err)
	}
}

func TestReadInvalid(t *testing.T) {
	for file, content := range map[string]string{
		"cpu/online":                                 "0-",
		"cpu/cpu0/topology/physical_package_id":      "x",
		"cpu/cpu0/topology/thread_siblings_list":     "0-99999999999",
		"cpu/cpu0/cache/index3/level":                "three",
		"node/node0/distance":                        "10 far",
		"node/node0/meminfo":                         "Node 0 MemTotal: much kB",
		"node/node0/hugepages/hugepages-bigkB/x":     "1",
		"node/node0/hugepages/hugepages-2048kB/none": "1",
	} {
		sys := t.TempDir()
		sample.Named(t, "two-CPU VM").Write(t, sys)
		path := filepath.Join(sys, "devices/system", file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := topology.Read(sys, 0)
		if bad := filepath.Base(file) != "none"; (err != nil) != bad {
			t.Errorf("%s %q: %v", file, content, err)
		}
	}
	if _, err := topology.Read(t.TempDir(), 0); err == nil {
		t.Error("an empty directory was accepted")
	}
}

func FuzzParseList(f *testing.F) {
	for _, seed := range []string{"", "0", "0-3,8", "3-1", "0-4294967295", "1,,2", " 1 - 2 ", "-1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := topology.ParseList(text)
		if err != nil {
			return
		}
		again, err := topology.ParseList(set.String())
		if err != nil || !again.Equals(set) {
			t.Errorf("%q is %s, read again %s: %v", text, set, again, err)
		}
	})
}
