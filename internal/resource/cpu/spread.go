package cpu

import (
	"fmt"
	"maps"
	"math"

	"k8s.io/utils/cpuset"

	"swiftlet/internal/resource/topology"
)

// maxSpreadNodes limits the search for the best NUMA nodes: the number of combinations grows
// exponentially.
const maxSpreadNodes = 16

// spreadSearch searches for the NUMA nodes to distribute CPUs across.
type spreadSearch struct {
	*selection
	parts    map[int]cpuset.CPUSet // free CPUs by node
	nodes    []int                 // the nodes that have free CPUs, best first
	unit     int                   // number of CPUs per step of the distribution
	bySocket bool
}

// distribution takes share CPUs from each node, and the rest in units from some nodes in turn.
type distribution struct {
	nodes     []int
	share     int
	rest      []int
	imbalance float64
	oneSocket bool
}

// spread takes the CPUs from as few NUMA nodes as possible, evenly from each. Among the
// distributions, it chooses the one with the smallest imbalance of free CPUs.
func spread(m *topology.Machine, o Options, free cpuset.CPUSet, n, unit int) (cpuset.CPUSet, error) {
	packOptions := Options{FullCores: o.FullCores, AcrossCores: o.AcrossCores}
	t := newSelection(m, free, n)
	if n > t.free.Size() {
		return cpuset.New(), fmt.Errorf("not enough cpus available to satisfy request: requested=%d, available=%d", n, t.free.Size())
	}
	if n == 0 || unit < 1 || n%unit != 0 {
		return pack(m, packOptions, free, n)
	}
	s := &spreadSearch{selection: t, parts: m.Parts(t.free, topology.ByNode), unit: unit, bySocket: o.BySocket}
	for _, part := range ordered(m, t.free, t.node) {
		s.nodes = append(s.nodes, m.CPUs[part.UnsortedList()[0]].Node)
	}
	if len(s.nodes) > maxSpreadNodes {
		return pack(m, packOptions, free, n)
	}
	fewest, most := s.bounds()
	for k := fewest; k <= most; k++ {
		best := s.best(k)
		if best == nil {
			continue
		}
		if got, err := s.apply(*best, packOptions); err == nil {
			return got, nil
		}
	}
	return pack(m, packOptions, free, n)
}

// bounds returns the least number of nodes, if all were free and equal, and the largest.
func (s *spreadSearch) bounds() (fewest, most int) {
	up := func(a, b int) int { return (a + b - 1) / b }
	perNode := up(up(len(s.m.CPUs), s.unit), s.m.Count(topology.ByNode))
	units := up(s.need, s.unit)
	return up(units, perNode), min(units, len(s.nodes))
}

// best returns the best distribution across k nodes, nil if there is none.
func (s *spreadSearch) best(k int) *distribution {
	var best *distribution
	combinations(s.nodes, k, func(nodes []int) {
		d := s.evaluate(nodes)
		if d == nil {
			return
		}
		better := best == nil || d.imbalance < best.imbalance
		if best != nil && s.bySocket && d.oneSocket != best.oneSocket {
			better = d.oneSocket
		}
		if better {
			best = d
		}
	})
	return best
}

// evaluate returns the distribution across these nodes, nil if they have too few CPUs.
func (s *spreadSearch) evaluate(nodes []int) *distribution {
	d := &distribution{nodes: append([]int(nil), nodes...), share: s.need / len(nodes) / s.unit * s.unit}
	whole := 0
	for _, node := range nodes {
		usable := s.parts[node].Size() / s.unit * s.unit
		whole += usable
		if s.bySocket {
			d.share = min(d.share, usable)
		}
	}
	if whole < s.need {
		return nil
	}
	left := map[int]int{}
	for _, node := range s.nodes {
		left[node] = s.parts[node].Size()
	}
	for _, node := range nodes {
		if left[node] -= d.share; left[node] < 0 {
			return nil
		}
	}
	d.oneSocket = s.onOneSocket(nodes)
	rest := s.need - d.share*len(nodes)
	if rest == 0 {
		d.imbalance = deviation(left)
		return d
	}
	return s.evaluateRest(d, left, rest)
}

// evaluateRest finds the best nodes for the rest, trying more nodes before fewer.
func (s *spreadSearch) evaluateRest(d *distribution, left map[int]int, rest int) *distribution {
	found := false
	for k := len(d.nodes); k >= 1; k-- {
		combinations(d.nodes, k, func(nodes []int) {
			after := maps.Clone(left)
			if !distributeRest(after, nodes, rest, s.unit) {
				return
			}
			if imbalance := deviation(after); !found || imbalance < d.imbalance {
				d.imbalance, d.rest, found = imbalance, append([]int(nil), nodes...), true
			}
		})
	}
	if !found {
		return nil
	}
	return d
}

// distributeRest takes units from the nodes in turn until the rest is distributed.
func distributeRest(left map[int]int, nodes []int, rest, unit int) bool {
	for rest > 0 {
		before := rest
		for _, node := range nodes {
			if rest > 0 && left[node] >= unit {
				left[node] -= unit
				rest -= unit
			}
		}
		if rest == before {
			return false
		}
	}
	return true
}

func (s *spreadSearch) apply(d distribution, o Options) (cpuset.CPUSet, error) {
	t := &selection{m: s.m, free: s.free, got: cpuset.New(), need: s.need}
	from := func(node, n int) error {
		cpus, err := pack(t.m, o, t.free.Intersection(s.parts[node]), n)
		if err == nil {
			t.take(cpus)
		}
		return err
	}
	for _, node := range d.nodes {
		if err := from(node, d.share); err != nil {
			return cpuset.New(), err
		}
	}
	for t.need > 0 {
		before := t.need
		for _, node := range d.rest {
			if t.need > 0 && t.free.Intersection(s.parts[node]).Size() >= s.unit {
				if err := from(node, s.unit); err != nil {
					return cpuset.New(), err
				}
			}
		}
		if t.need == before {
			return cpuset.New(), fmt.Errorf("distribute CPUs: %d CPUs do not fit", t.need)
		}
	}
	return t.got, nil
}

func (s *spreadSearch) onOneSocket(nodes []int) bool {
	all := cpuset.New()
	for _, node := range nodes {
		all = all.Union(s.parts[node])
	}
	return len(s.m.Parts(all, topology.BySocket)) <= 1
}

// combinations calls each with every combination of k of the ids, in order.
func combinations(ids []int, k int, each func([]int)) {
	var choose func(from int, chosen []int)
	choose = func(from int, chosen []int) {
		if len(chosen) == k {
			each(chosen)
			return
		}
		for i := from; i <= len(ids)-(k-len(chosen)); i++ {
			choose(i+1, append(chosen, ids[i]))
		}
	}
	choose(0, make([]int, 0, k))
}

// deviation returns the standard deviation rounded to three places: sums of floating-point
// numbers depend on their order.
func deviation(values map[int]int) float64 {
	round := func(x float64) float64 { return math.Round(x*1000) / 1000 }
	var sum, squares float64
	for _, v := range values {
		sum += float64(v)
	}
	mean := round(sum / float64(len(values)))
	for _, v := range values {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	return round(math.Sqrt(squares / float64(len(values))))
}
