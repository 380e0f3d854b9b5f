package cpu

import (
	"fmt"
	"maps"
	"math"

	"k8s.io/utils/cpuset"

	"swiftlet/internal/resource/topology"
)

// mostNodes bounds the search for the best nodes to spread over: the ways to choose among
// them grow without measure.
const mostNodes = 16

// spreading is a search for NUMA nodes to spread over.
type spreading struct {
	*taking
	parts    map[int]cpuset.CPUSet // free CPUs by node
	nodes    []int                 // the nodes that have free CPUs, best first
	unit     int                   // CPUs are dealt out so many at a time
	bySocket bool
}

// deal is a way to spread: as much from each node, and the rest by units in turn from some.
type deal struct {
	nodes     []int
	share     int
	rest      []int
	imbalance float64
	oneSocket bool
}

// spread takes the CPUs from as few NUMA nodes as it can, evenly from each of them. Among
// the ways to do so it chooses the one that leaves the machine most evenly used.
func spread(m *topology.Machine, o Options, free cpuset.CPUSet, n, unit int) (cpuset.CPUSet, error) {
	fallBack := Options{FullCores: o.FullCores, AcrossCores: o.AcrossCores}
	t := newTaking(m, free, n)
	if n > t.free.Size() {
		return cpuset.New(), fmt.Errorf("not enough cpus available to satisfy request: requested=%d, available=%d", n, t.free.Size())
	}
	if n == 0 || unit < 1 || n%unit != 0 {
		return pack(m, fallBack, free, n)
	}
	s := &spreading{taking: t, parts: m.Parts(t.free, topology.ByNode), unit: unit, bySocket: o.BySocket}
	for _, part := range ordered(m, t.free, t.node) {
		s.nodes = append(s.nodes, m.CPUs[part.UnsortedList()[0]].Node)
	}
	if len(s.nodes) > mostNodes {
		return pack(m, fallBack, free, n)
	}
	fewest, most := s.bounds()
	for k := fewest; k <= most; k++ {
		best := s.best(k)
		if best == nil {
			continue
		}
		if got, err := s.carryOut(*best, fallBack); err == nil {
			return got, nil
		}
	}
	return pack(m, fallBack, free, n)
}

// bounds are how many nodes it may take at least, were they all free and alike, and at most.
func (s *spreading) bounds() (fewest, most int) {
	up := func(a, b int) int { return (a + b - 1) / b }
	perNode := up(up(len(s.m.CPUs), s.unit), s.m.Count(topology.ByNode))
	units := up(s.need, s.unit)
	return up(units, perNode), min(units, len(s.nodes))
}

// best is the best way to spread over k nodes, nil where there is none.
func (s *spreading) best(k int) *deal {
	var best *deal
	combinations(s.nodes, k, func(nodes []int) {
		d := s.judge(nodes)
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

// judge finds out how the CPUs would be spread over these nodes.
func (s *spreading) judge(nodes []int) *deal {
	d := &deal{nodes: append([]int(nil), nodes...), share: s.need / len(nodes) / s.unit * s.unit}
	whole := 0
	for _, node := range nodes {
		has := s.parts[node].Size() / s.unit * s.unit
		whole += has
		if s.bySocket {
			d.share = min(d.share, has)
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
	d.oneSocket = s.inOneSocket(nodes)
	rest := s.need - d.share*len(nodes)
	if rest == 0 {
		d.imbalance = deviation(left)
		return d
	}
	return s.judgeRest(d, left, rest)
}

// judgeRest finds the nodes that the rest is best taken from, more nodes before fewer.
func (s *spreading) judgeRest(d *deal, left map[int]int, rest int) *deal {
	found := false
	for k := len(d.nodes); k >= 1; k-- {
		combinations(d.nodes, k, func(nodes []int) {
			after := maps.Clone(left)
			if !dealOut(after, nodes, rest, s.unit) {
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

// dealOut takes units from the nodes in turn until nothing is wanted any more.
func dealOut(left map[int]int, nodes []int, rest, unit int) bool {
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

func (s *spreading) carryOut(d deal, o Options) (cpuset.CPUSet, error) {
	t := &taking{m: s.m, free: s.free, got: cpuset.New(), need: s.need}
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
			return cpuset.New(), fmt.Errorf("%d CPUs could not be spread", t.need)
		}
	}
	return t.got, nil
}

func (s *spreading) inOneSocket(nodes []int) bool {
	all := cpuset.New()
	for _, node := range nodes {
		all = all.Union(s.parts[node])
	}
	return len(s.m.Parts(all, topology.BySocket)) <= 1
}

// combinations calls each with every choice of k of the ids, in order.
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

// deviation is the standard deviation, to three places: sums of fractions come out
// differently in different orders.
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
