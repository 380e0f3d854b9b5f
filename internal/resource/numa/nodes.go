package numa

import (
	"fmt"
	"math/bits"
	"strings"
)

// Most is how many NUMA nodes can be told apart.
const Most = 64

// Nodes is a set of NUMA nodes, by their numbers.
type Nodes uint64

// Of is the set of the given nodes. A number that no set can hold is an error.
func Of(ids ...int) (Nodes, error) {
	var n Nodes
	for _, id := range ids {
		if id < 0 || id >= Most {
			return 0, fmt.Errorf("NUMA node %d: numbers go from 0 to %d", id, Most-1)
		}
		n |= 1 << id
	}
	return n, nil
}

// Count is how many nodes are in the set.
func (n Nodes) Count() int { return bits.OnesCount64(uint64(n)) }

// Has reports whether the node is in the set.
func (n Nodes) Has(id int) bool { return id >= 0 && id < Most && n>>id&1 == 1 }

// Within reports whether every node of n is in m.
func (n Nodes) Within(m Nodes) bool { return n&^m == 0 }

// List is the nodes in ascending order.
func (n Nodes) List() []int {
	ids := make([]int, 0, n.Count())
	for rest := uint64(n); rest != 0; rest &= rest - 1 {
		ids = append(ids, bits.TrailingZeros64(rest))
	}
	return ids
}

// Narrower reports whether n has fewer nodes than m, or as many but lower ones.
func (n Nodes) Narrower(m Nodes) bool {
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

// Subsets calls each with every set of one or more of the nodes, smaller sets first.
func (n Nodes) Subsets(each func(Nodes)) {
	ids := n.List()
	for size := 1; size <= len(ids); size++ {
		choose(ids, size, 0, each)
	}
}

// choose adds size more of ids to what is chosen.
func choose(ids []int, size int, chosen Nodes, each func(Nodes)) {
	if size == 0 {
		each(chosen)
		return
	}
	for i := range ids[:len(ids)-size+1] {
		choose(ids[i+1:], size-1, chosen|1<<ids[i], each)
	}
}
