package numa

import (
	"maps"
	"slices"
)

// Layout is what of a machine decides which nodes are chosen.
type Layout struct {
	All Nodes
	// Distances[a][b] is how far b's memory is from a; nil where that is not to matter.
	Distances map[int][]uint64
}

// choice is what comes of one hint for each resource.
type choice struct {
	Hint
	// bound: at least one of the hints said where.
	bound bool
}

// merge finds the nodes that suit all resources best. The result is what trying every
// combination of hints would find, at the cost of the distinct outcomes only: combinations
// grow with each resource, outcomes do not.
func merge(layout Layout, resources [][]Hint) Hint {
	outcomes := map[choice]bool{{Hint: Hint{Nodes: layout.All, Preferred: true}}: true}
	for _, hints := range resources {
		next := map[choice]bool{}
		for sofar := range outcomes {
			for _, h := range hints {
				next[sofar.and(h)] = true
			}
		}
		outcomes = next
	}
	target := widestNeed(resources)
	var best *Hint
	for o := range outcomes {
		if o.Nodes != 0 && (best == nil || layout.better(o.Hint, *best, target)) {
			best = &Hint{o.Nodes, o.Preferred}
		}
	}
	if best == nil {
		return Hint{Nodes: layout.All}
	}
	return *best
}

// and adds one resource's hint. Together they are preferred only if all say the same nodes.
func (c choice) and(h Hint) choice {
	c.Preferred = c.Preferred && h.Preferred
	if h.Nodes == 0 {
		return c
	}
	if c.bound && c.Nodes != h.Nodes {
		c.Preferred = false
	}
	c.Nodes &= h.Nodes
	c.bound = true
	return c
}

// widestNeed is the number of nodes that the neediest resource cannot do without.
func widestNeed(resources [][]Hint) int {
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

// better reports whether a suits better than b, both of at least one node. Among those that
// are not preferred, one of exactly as many nodes as the neediest resource must have comes
// first, then the largest below that, then the smallest above.
func (l Layout) better(a, b Hint, target int) bool {
	if a.Preferred != b.Preferred {
		return a.Preferred
	}
	if a.Nodes.Count() == b.Nodes.Count() || a.Preferred {
		return l.closer(a.Nodes, b.Nodes)
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

// closer prefers fewer nodes, then those that are closer together where that matters, then
// lower numbers.
func (l Layout) closer(a, b Nodes) bool {
	if l.Distances == nil || a.Count() != b.Count() {
		return a.Narrower(b)
	}
	if x, y := l.spread(a), l.spread(b); x != y {
		return x < y
	}
	return a < b
}

// spread is the sum of the distances between the nodes.
func (l Layout) spread(n Nodes) (sum uint64) {
	for _, from := range n.List() {
		for _, to := range n.List() {
			if row := l.Distances[from]; to < len(row) {
				sum += row[to]
			}
		}
	}
	return sum
}

// flatten gives every resource a list of hints with at least one in it.
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
