package cpu

import (
	"testing"

	"k8s.io/utils/cpuset"

	"swiftlet/internal/resource/topology"
	"swiftlet/internal/resource/topology/sample"
)

func set(t testing.TB, list string) cpuset.CPUSet {
	t.Helper()
	s, err := topology.ParseList(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// machine caches the samples, whose trees have hundreds of files.
func machine(t testing.TB, name string) *topology.Machine {
	t.Helper()
	if m, ok := machines[name]; ok {
		return m
	}
	machines[name] = sample.Named(t, name).Read(t)
	return machines[name]
}

var machines = map[string]*topology.Machine{}

func TestTake(t *testing.T) {
	const (
		smt      = "1 socket, SMT"                                        // 8 cores, i and i+8
		dual     = "2 sockets, 2 NUMA nodes, SMT"                         // 10 cores each, i and i+20
		inTurn   = "2 sockets, CPUs numbered in turn"                     // even and odd, i and i+12
		clusters = "2 sockets with sub-NUMA clusters"                     // 4 nodes of 8 cores, i and i+32
		amd      = "AMD, L3 clusters of 4 cores"                          // caches of 0-3, 4-7, ..., i and i+16
		amd8     = "AMD, 2 sockets, 4 nodes each, L3 clusters of 3 cores" // nodes of 6 cores, i and i+48
		mixed    = "hybrid, 6 big and 8 small cores"                      // 0-11 in pairs, 12-19 alone
		broken   = "offline CPUs"                                         // 1, 6 and 9 are off, i and i+8
	)
	for _, c := range []struct {
		machine string
		options Options
		busy    string
		n       int
		want    string // empty: error
	}{
		{"one-CPU VM", Options{}, "", 1, "0"},
		{"one-CPU VM", Options{}, "0", 1, ""},
		{"two-CPU VM", Options{}, "0", 1, "1"},
		{smt, Options{}, "", 1, "0"},
		{smt, Options{}, "0,8", 2, "1,9"},
		{smt, Options{}, "0,8,1", 1, "9"},      // the partly used core first
		{smt, Options{}, "0,8,1", 3, "2,9,10"}, // a whole core, then the partly used one
		{smt, Options{}, "", 16, "0-15"},
		{smt, Options{}, "", 17, ""},
		{smt, Options{FullCores: true}, "0,8,1", 2, "2,10"},
		{smt, Options{FullCores: true}, "0-6,8", 4, ""},
		{smt, Options{AcrossCores: true}, "0,8", 3, "1-3"},
		{"1 socket, no SMT", Options{}, "0", 3, "1-3"},
		{dual, Options{}, "", 20, "0-9,20-29"},    // a whole socket
		{dual, Options{}, "0", 20, "10-19,30-39"}, // the whole one of two
		{dual, Options{}, "0,20", 4, "1-2,21-22"}, // the socket with fewer free CPUs
		{dual, Options{}, "0,20", 22, "1,10-19,21,30-39"},
		{inTurn, Options{}, "", 4, "0,2,12,14"},
		{inTurn, Options{}, "0,12", 12, "1,3,5,7,9,11,13,15,17,19,21,23"},
		{clusters, Options{}, "", 32, "0-15,32-47"},  // a socket of two nodes
		{clusters, Options{}, "0", 16, "8-15,40-47"}, // a node, on the socket with fewer free CPUs
		{clusters, Options{AcrossNodes: true}, "0,8,16,24,32,40,48,56", 20, "1-5,9-13,33-37,41-45"},
		{clusters, Options{AcrossNodes: true}, "", 16, "0-7,32-39"},
		{clusters, Options{AcrossNodes: true, FullCores: true}, "0,32", 18, "8-12,16-19,40-44,48-51"},
		{dual, Options{AcrossNodes: true}, "", 22, "0-5,10-15,20-24,30-34"},
		{amd, Options{}, "0,16", 8, "1-4,17-20"},
		{amd, Options{ByCache: true}, "0,16", 8, "4-7,20-23"},
		{amd, Options{ByCache: true}, "0,16", 6, "1-3,17-19"},
		{amd, Options{ByCache: true}, "0,16", 3, "1-2,17"},
		{amd, Options{ByCache: true}, "0,16", 12, "1-2,4-7,17-18,20-23"},
		{amd8, Options{ByCache: true}, "0,48", 6, "3-5,51-53"},
		{mixed, Options{}, "", 3, "12-14"}, // small cores first
		{mixed, Options{}, "12-19", 3, "0-2"},
		{mixed, Options{FullCores: true}, "12-18", 3, "0-1,19"},
		{mixed, Options{FullCores: true}, "12-19", 3, ""},
		{broken, Options{}, "", 1, "14"}, // its sibling is offline
		{broken, Options{FullCores: true}, "0,8", 1, "14"},
	} {
		m := machine(t, c.machine)
		got, err := take(m, c.options, m.All().Difference(set(t, c.busy)), c.n)
		if (err != nil) != (c.want == "") || err == nil && !got.Equals(set(t, c.want)) {
			t.Errorf("%s, %+v, busy %q: %d CPUs are %s (%v), want %q", c.machine, c.options, c.busy, c.n, got, err, c.want)
		}
	}
}

func TestParseOptions(t *testing.T) {
	all := AllowedOptions{Alpha: true, Beta: true}
	for _, c := range []struct {
		values  map[string]string
		allowed AllowedOptions
		ok      bool
	}{
		{nil, AllowedOptions{}, true},
		{map[string]string{fullCores: "true", strictReservation: "true", byCache: "false"}, AllowedOptions{}, true},
		{map[string]string{fullCores: "maybe"}, all, false},
		{map[string]string{"other": "true"}, all, false},
		{map[string]string{bySocket: "true"}, AllowedOptions{Beta: true}, false},
		{map[string]string{acrossNodes: "true"}, AllowedOptions{Alpha: true}, false},
		{map[string]string{acrossNodes: "true", bySocket: "true"}, all, true},
		{map[string]string{fullCores: "true", acrossCores: "true"}, all, false},
		{map[string]string{byCache: "true", acrossNodes: "true"}, all, false},
	} {
		if _, err := ParseOptions(c.values, c.allowed); (err == nil) != c.ok {
			t.Errorf("%v with %+v: %v", c.values, c.allowed, err)
		}
	}
}
