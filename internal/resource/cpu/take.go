package cpu

import (
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"

	"swiftlet/internal/resource/topology"
)

// take chooses n of the free CPUs so that they lie together as the options ask. It depends
// on nothing but its arguments.
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

// taking is a choice in progress.
type taking struct {
	m    *topology.Machine
	free cpuset.CPUSet
	got  cpuset.CPUSet
	need int
	order
}

// order is how the machine's parts lie in each other: the levels that lead to each.
type order struct{ outer, node, socket, core []topology.Level }

func orderOf(m *topology.Machine) order {
	s, n, c := topology.BySocket, topology.ByNode, topology.ByCore
	if m.Count(s) >= m.Count(n) { // a node holds sockets, or is one
		return order{[]topology.Level{n}, []topology.Level{n}, []topology.Level{n, s}, []topology.Level{n, s, c}}
	}
	return order{[]topology.Level{s}, []topology.Level{s, n}, []topology.Level{s}, []topology.Level{s, n, c}}
}

func newTaking(m *topology.Machine, free cpuset.CPUSet, n int) *taking {
	return &taking{m: m, free: free.Intersection(m.All()), got: cpuset.New(), need: n, order: orderOf(m)}
}

// pack fills the machine up: whole sockets and nodes where that many are wanted, then caches
// where asked, then whole cores, then what is left of broken ones. Of parts that would do,
// the one with the fewest free CPUs comes first, so that large ones stay whole.
func pack(m *topology.Machine, o Options, free cpuset.CPUSet, n int) (cpuset.CPUSet, error) {
	t := newTaking(m, free, n)
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

func (t *taking) take(cpus cpuset.CPUSet) {
	t.got = t.got.Union(cpus)
	t.free = t.free.Difference(cpus)
	t.need -= cpus.Size()
}

// takeWhole takes parts of the last of the levels that are free as a whole and wanted as a
// whole.
func (t *taking) takeWhole(levels []topology.Level) {
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

// onlyCores takes whole cores and nothing else. Where cores differ in size the small ones
// come first, unless that does not come out even.
func (t *taking) onlyCores() (cpuset.CPUSet, error) {
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
		return cpuset.New(), fmt.Errorf("not enough whole cores: %d CPUs are missing", t.need)
	}
	return t.got, nil
}

// takeSingles takes CPUs one by one: those of broken cores first, or in the order of their
// numbers, which has the threads of a core apart.
func (t *taking) takeSingles(acrossCores bool) {
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

// ordered divides the free CPUs by the last of the levels. Parts lie beside their
// neighbours of the levels before; at each level those with fewer free CPUs come first.
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
