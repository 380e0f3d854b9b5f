package cpu

import (
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"

	"swiftlet/internal/resource/topology"
)

// take selects n of the free CPUs, aligned by the options. It is a pure function.
func take(m *topology.Machine, o Options, free cpuset.CPUSet, n int) (cpuset.CPUSet, error) {
	if o.AcrossNodes {
		unit := 1
		if o.FullCores {
			unit = m.ThreadsPerCore()
		}
		return spread(m, o, free, n, unit)
	}
	return pack(m, o, free, n)
}

// selection is an incomplete selection of CPUs.
type selection struct {
	m    *topology.Machine
	free cpuset.CPUSet
	got  cpuset.CPUSet
	need int
	hierarchy
}

// hierarchy is the nesting of the topology's levels: the path of levels to each.
type hierarchy struct{ outer, node, socket, core []topology.Level }

func hierarchyOf(m *topology.Machine) hierarchy {
	s, n, c := topology.BySocket, topology.ByNode, topology.ByCore
	if m.Count(s) >= m.Count(n) { // a node contains sockets, or equals one
		return hierarchy{[]topology.Level{n}, []topology.Level{n}, []topology.Level{n, s}, []topology.Level{n, s, c}}
	}
	return hierarchy{[]topology.Level{s}, []topology.Level{s, n}, []topology.Level{s}, []topology.Level{s, n, c}}
}

func newSelection(m *topology.Machine, free cpuset.CPUSet, n int) *selection {
	return &selection{m: m, free: free.Intersection(m.All()), got: cpuset.New(), need: n, hierarchy: hierarchyOf(m)}
}

// pack takes whole sockets and NUMA nodes while they fit the request, then with ByCache whole
// caches, then whole cores, then single CPUs of partly used cores. It prefers the part with the
// fewest free CPUs, so that large parts stay whole.
func pack(m *topology.Machine, o Options, free cpuset.CPUSet, n int) (cpuset.CPUSet, error) {
	t := newSelection(m, free, n)
	if n > t.free.Size() {
		return cpuset.New(), fmt.Errorf("not enough cpus available to satisfy request: requested=%d, available=%d", n, t.free.Size())
	}
	t.takeWhole(t.outer)
	t.takeWhole(t.core[:2])
	if o.ByCache {
		t.takeByCache()
	}
	if o.FullCores {
		return t.onlyCores()
	}
	if !o.AcrossCores {
		t.takeWhole(t.core)
	}
	t.takeSingles(o.AcrossCores)
	return t.got, nil
}

func (t *selection) take(cpus cpuset.CPUSet) {
	t.got = t.got.Union(cpus)
	t.free = t.free.Difference(cpus)
	t.need -= cpus.Size()
}

// takeWhole takes parts of the last level that are completely free and fit the request.
func (t *selection) takeWhole(levels []topology.Level) {
	if t.need == 0 {
		return
	}
	level := levels[len(levels)-1]
	for _, part := range ordered(t.m, t.free, levels) {
		whole := t.m.Part(part.UnsortedList()[0], level)
		if part.Size() == whole.Size() && whole.Size() <= t.need {
			t.take(whole)
		}
	}
}

// onlyCores takes whole cores only. If cores differ in size, it tries the small ones first, and
// the large ones first if that does not add up.
func (t *selection) onlyCores() (cpuset.CPUSet, error) {
	before := *t
	t.takeWhole(t.core)
	if t.need == 0 {
		return t.got, nil
	}
	*t = before
	cores := ordered(t.m, t.free, t.core)
	slices.SortStableFunc(cores, func(a, b cpuset.CPUSet) int { return b.Size() - a.Size() })
	for _, core := range cores {
		if core.Size() == t.m.Part(core.UnsortedList()[0], topology.ByCore).Size() && core.Size() <= t.need {
			t.take(core)
		}
	}
	if t.need > 0 {
		return cpuset.New(), fmt.Errorf("take whole cores: %d CPUs are missing", t.need)
	}
	return t.got, nil
}

// takeSingles takes single CPUs: those of partly used cores first, or with acrossCores in the
// order of their ids, which separates the threads of a core.
func (t *selection) takeSingles(acrossCores bool) {
	levels := t.core
	if acrossCores {
		levels = t.socket
	}
	for _, part := range ordered(t.m, t.free, levels) {
		for _, cpu := range part.List() {
			if t.need == 0 {
				return
			}
			t.take(cpuset.New(cpu))
		}
	}
}

// ordered divides the free CPUs by the last level, grouped by the levels before. At each level,
// parts with fewer free CPUs come first.
func ordered(m *topology.Machine, free cpuset.CPUSet, levels []topology.Level) []cpuset.CPUSet {
	parts := m.Parts(free, levels[0])
	ids := make([]int, 0, len(parts))
	for id := range parts {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b int) int {
		if d := parts[a].Size() - parts[b].Size(); d != 0 {
			return d
		}
		return a - b
	})
	var all []cpuset.CPUSet
	for _, id := range ids {
		if len(levels) == 1 {
			all = append(all, parts[id])
		} else {
			all = append(all, ordered(m, parts[id], levels[1:])...)
		}
	}
	return all
}
