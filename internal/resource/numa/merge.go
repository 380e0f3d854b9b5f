package numa

import (
	"maps"
	"slices"
)

// Layout is a machine's NUMA nodes and their distances.
type Layout struct {
	All Nodes
	// Distances[a][b] is the distance from a to b's memory; nil to ignore distances.
	Distances map[int][]uint64
}

// combination is the intersection of one hint per resource.
type combination struct {
	Hint
	// constrained is set if at least one of the hints names nodes.
	constrained bool
}

// merge returns the best hint for all resources. It finds what an exhaustive search over the
// combinations of hints finds, but keeps only distinct intersections: their number does not grow
// with each resource.
func merge(layout Layout, resources [][]Hint) Hint {
	outcomes := map[combination]bool{{Hint: Hint{Nodes: layout.All, Preferred: true}}: true}
	for _, hints := range resources {
		next := map[combination]bool{}
		for combined := range outcomes {
			for _, h := range hints {
				next[combined.with(h)] = true
			}
		}
		outcomes = next
	}
	target := minNodes(resources)
	var best *Hint
	for o := range outcomes {
		if o.Nodes != 0 && (best == nil || layout.isBetter(o.Hint, *best, target)) {
			best = &Hint{o.Nodes, o.Preferred}
		}
	}
	if best == nil {
		return Hint{Nodes: layout.All}
	}
	return *best
}

// with adds one resource's hint. The result is preferred only if all hints name the same nodes.
func (c combination) with(h Hint) combination {
	c.Preferred = c.Preferred && h.Preferred
	if h.Nodes == 0 {
		return c
	}
	if c.constrained && c.Nodes != h.Nodes {
		c.Preferred = false
	}
	c.Nodes &= h.Nodes
	c.constrained = true
	return c
}

// minNodes returns the largest of the resources' minimal numbers of nodes.
func minNodes(resources [][]Hint) int {
	widest := 0
	for _, hints := range resources {
		narrowest := 0
		for _, h := range hints {
			if n := h.Nodes.Count(); n > 0 && (narrowest == 0 || n < narrowest) {
				narrowest = n
			}
		}
		widest = max(widest, narrowest)
	}
	return widest
}

// isBetter reports whether a is better than b, both of at least one node. Among hints that are not
// preferred, one with exactly target nodes is best, then the largest below, then the smallest
// above.
func (l Layout) isBetter(a, b Hint, target int) bool {
	if a.Preferred != b.Preferred {
		return a.Preferred
	}
	if a.Nodes.Count() == b.Nodes.Count() || a.Preferred {
		return l.isCloser(a.Nodes, b.Nodes)
	}
	rank := func(h Hint) (above bool, miss int) {
		n := h.Nodes.Count()
		return n > target, max(n-target, target-n)
	}
	aAbove, aMiss := rank(a)
	bAbove, bMiss := rank(b)
	if aAbove != bAbove {
		return bAbove
	}
	return aMiss < bMiss
}

// isCloser prefers fewer nodes, then smaller distances if they are known, then lower node ids.
func (l Layout) isCloser(a, b Nodes) bool {
	if l.Distances == nil || a.Count() != b.Count() {
		return a.LessThan(b)
	}
	if x, y := l.totalDistance(a), l.totalDistance(b); x != y {
		return x < y
	}
	return a < b
}

// totalDistance returns the sum of the distances between the nodes.
func (l Layout) totalDistance(n Nodes) (sum uint64) {
	for _, from := range n.List() {
		for _, to := range n.List() {
			if row := l.Distances[from]; to < len(row) {
				sum += row[to]
			}
		}
	}
	return sum
}

// flatten returns a non-empty list of hints for every resource.
func flatten(all []Hints) [][]Hint {
	var flat [][]Hint
	for _, hints := range all {
		for _, name := range slices.Sorted(maps.Keys(hints)) {
			switch list := hints[name]; {
			case list == nil:
				flat = append(flat, []Hint{{Preferred: true}})
			case len(list) == 0:
				flat = append(flat, []Hint{{Preferred: false}})
			default:
				flat = append(flat, list)
			}
		}
	}
	return flat
}
