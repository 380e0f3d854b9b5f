// Package memory gives containers memory of certain NUMA nodes. As with CPUs, who has what
// is a value, what to give is decided by pure functions, and Memory keeps the value.
package memory

import (
	"encoding/json"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/resource/numa"
)

// Table is what a node has of one kind of memory, in bytes.
type Table struct {
	TotalMemSize   uint64 `json:"total"`
	SystemReserved uint64 `json:"systemReserved"`
	Allocatable    uint64 `json:"allocatable"`
	Reserved       uint64 `json:"reserved"`
	Free           uint64 `json:"free"`
}

// NodeState is what a NUMA node has, and with which nodes its memory is given together: a
// node that is used alone is not used with others, and the other way round.
type NodeState struct {
	NumberOfAssignments int                        `json:"numberOfAssignments"`
	MemoryMap           map[v1.ResourceName]*Table `json:"memoryMap"`
	Cells               []int                      `json:"cells"`
}

// Block is memory that was given.
type Block struct {
	NUMAAffinity []int           `json:"numaAffinity"`
	Type         v1.ResourceName `json:"type"`
	Size         uint64          `json:"size"`
}

// State is who has what. It is a value: what changes it returns another.
type State struct {
	Nodes map[int]*NodeState
	Given map[types.UID]map[string][]Block
	// Pods are what pods have that were given theirs as a whole; Given has how their
	// containers divide it.
	Pods map[types.UID][]Block
}

// taken is what the pod has of the nodes.
func (s State) taken(uid types.UID) (all []Block) {
	if whole, ok := s.Pods[uid]; ok {
		return whole
	}
	for _, blocks := range s.Given[uid] {
		all = append(all, blocks...)
	}
	return all
}

// clone is deep, so that a change can be made and then not be wanted.
func (s State) clone() State {
	next := State{Nodes: map[int]*NodeState{}, Given: map[types.UID]map[string][]Block{}, Pods: map[types.UID][]Block{}}
	for id, n := range s.Nodes {
		c := &NodeState{NumberOfAssignments: n.NumberOfAssignments, MemoryMap: map[v1.ResourceName]*Table{}, Cells: slices.Clone(n.Cells)}
		for name, t := range n.MemoryMap {
			table := *t
			c.MemoryMap[name] = &table
		}
		next.Nodes[id] = c
	}
	for uid, containers := range s.Given {
		mine := map[string][]Block{}
		for name, blocks := range containers {
			mine[name] = slices.Clone(blocks)
		}
		next.Given[uid] = mine
	}
	maps.Copy(next.Pods, s.Pods) // their blocks do not change
	return next
}

// charge takes memory from the nodes, from the first as far as it goes.
func (s State) charge(nodes []int, kind v1.ResourceName, size uint64) {
	for _, id := range nodes {
		n := s.Nodes[id]
		n.NumberOfAssignments++
		n.Cells = slices.Clone(nodes)
		if t := n.MemoryMap[kind]; t != nil {
			part := min(size, t.Free)
			t.Free -= part
			t.Reserved += part
			size -= part
		}
	}
}

// without is the state after the pod's end.
func (s State) without(uid types.UID) State {
	next := s.clone()
	for _, b := range next.taken(uid) {
		next.discharge(b)
	}
	delete(next.Given, uid)
	delete(next.Pods, uid)
	return next
}

func (s State) discharge(b Block) {
	size := b.Size
	for _, id := range b.NUMAAffinity {
		n := s.Nodes[id]
		if n.NumberOfAssignments--; n.NumberOfAssignments == 0 {
			n.Cells = []int{id}
		}
		if t := n.MemoryMap[b.Type]; t != nil {
			part := min(size, t.Reserved)
			t.Free += part
			t.Reserved -= part
			size -= part
		}
	}
}

// nodes is the set of all nodes.
func (s State) nodes() (all numa.Nodes) {
	for id := range s.Nodes {
		all |= 1 << id
	}
	return all
}

// onto lays what was given over nodes from which nothing is given yet. Pods that have what
// the machine no longer has are left out and returned.
func (s State) onto(fresh State) (State, []types.UID) {
	next := fresh.clone()
	var lost []types.UID
	for _, uid := range slices.Sorted(maps.Keys(s.Given)) {
		if !fits(next, s.taken(uid)) {
			lost = append(lost, uid)
			continue
		}
		for _, b := range s.taken(uid) {
			next.charge(b.NUMAAffinity, b.Type, b.Size)
		}
		next.Given[uid] = s.Given[uid]
		if whole, ok := s.Pods[uid]; ok {
			next.Pods[uid] = whole
		}
	}
	return next, lost
}

func fits(s State, blocks []Block) bool {
	for _, b := range blocks {
		for _, id := range b.NUMAAffinity {
			if n, ok := s.Nodes[id]; !ok || n.MemoryMap[b.Type] == nil {
				return false
			}
		}
	}
	return true
}

// same reports whether two states describe the same machine with the same given.
func same(a, b State) bool {
	x, errX := json.Marshal(a.Nodes)
	y, errY := json.Marshal(b.Nodes)
	return errX == nil && errY == nil && string(x) == string(y)
}
