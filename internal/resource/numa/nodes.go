package numa

import (
	"fmt"
	"math/bits"
	"strings"
)

// MaxNodes is the number of NUMA nodes that a set can hold.
const MaxNodes = 64

// Nodes is a set of NUMA node ids.
type Nodes uint64

// NewNodes returns the set of the given nodes. An id that does not fit is an error.
func NewNodes(ids ...int) (Nodes, error) {
	var n Nodes
	for _, id := range ids {
		if id < 0 || id >= MaxNodes {
			return 0, fmt.Errorf("NUMA node %d: ids range from 0 to %d", id, MaxNodes-1)
		}
		n |= 1 << id
	}
	return n, nil
}

// Count returns the number of nodes.
func (n Nodes) Count() int { return bits.OnesCount64(uint64(n)) }

// Has reports whether the node is in the set.
func (n Nodes) Has(id int) bool { return id >= 0 && id < MaxNodes && n>>id&1 == 1 }

// SubsetOf reports whether every node of n is in m.
func (n Nodes) SubsetOf(m Nodes) bool { return n&^m == 0 }

// List returns the nodes in ascending order.
func (n Nodes) List() []int {
	ids := make([]int, 0, n.Count())
	for rest := uint64(n); rest != 0; rest &= rest - 1 {
		ids = append(ids, bits.TrailingZeros64(rest))
	}
	return ids
}

// LessThan reports whether n has fewer nodes than m, or as many with lower ids.
func (n Nodes) LessThan(m Nodes) bool {
	if n.Count() != m.Count() {
		return n.Count() < m.Count()
	}
	return n < m
}

func (n Nodes) String() string {
	var text []string
	for _, id := range n.List() {
		text = append(text, fmt.Sprint(id))
	}
	return strings.Join(text, ",")
}

// Subsets calls each with every non-empty subset, smaller ones first.
func (n Nodes) Subsets(each func(Nodes)) {
	ids := n.List()
	for size := 1; size <= len(ids); size++ {
		combinations(ids, size, 0, each)
	}
}

// combinations calls each with chosen plus every combination of size ids.
func combinations(ids []int, size int, chosen Nodes, each func(Nodes)) {
	if size == 0 {
		each(chosen)
		return
	}
	for i := range ids[:len(ids)-size+1] {
		combinations(ids[i+1:], size-1, chosen|1<<ids[i], each)
	}
}
