// Package memory is the memory manager: it allocates memory of NUMA nodes to containers. As in
// package cpu, the allocations are a value (State), the static policy is pure functions, and
// Memory holds the current state.
package memory

import (
	"encoding/json"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/resource/numa"
)

// Table is a NUMA node's memory of one resource, in bytes.
type Table struct {
	TotalMemSize   uint64 `json:"total"`
	SystemReserved uint64 `json:"systemReserved"`
	Allocatable    uint64 `json:"allocatable"`
	Reserved       uint64 `json:"reserved"`
	Free           uint64 `json:"free"`
}

// NodeState is the state of a NUMA node. Cells are the nodes that its memory is allocated
// together with: a node that is used alone is not used in a group, and vice versa.
type NodeState struct {
	NumberOfAssignments int                        `json:"numberOfAssignments"`
	MemoryMap           map[v1.ResourceName]*Table `json:"memoryMap"`
	Cells               []int                      `json:"cells"`
}

// Block is allocated memory.
type Block struct {
	NUMAAffinity []int           `json:"numaAffinity"`
	Type         v1.ResourceName `json:"type"`
	Size         uint64          `json:"size"`
}

// State is the allocation of memory. It is a value: its methods return a changed copy.
type State struct {
	Nodes      map[int]*NodeState
	Containers map[types.UID]map[string][]Block
	// Pods are the allocations of pods with pod-level resources; Containers has how their
	// containers divide them.
	Pods map[types.UID][]Block
}

// ofPod returns all blocks of the pod.
func (s State) ofPod(uid types.UID) (all []Block) {
	if whole, ok := s.Pods[uid]; ok {
		return whole
	}
	for _, blocks := range s.Containers[uid] {
		all = append(all, blocks...)
	}
	return all
}

// clone returns a deep copy, so that a failed change can be discarded.
func (s State) clone() State {
	next := State{Nodes: map[int]*NodeState{}, Containers: map[types.UID]map[string][]Block{}, Pods: map[types.UID][]Block{}}
	for id, n := range s.Nodes {
		c := &NodeState{NumberOfAssignments: n.NumberOfAssignments, MemoryMap: map[v1.ResourceName]*Table{}, Cells: slices.Clone(n.Cells)}
		for name, t := range n.MemoryMap {
			table := *t
			c.MemoryMap[name] = &table
		}
		next.Nodes[id] = c
	}
	for uid, containers := range s.Containers {
		copied := map[string][]Block{}
		for name, blocks := range containers {
			copied[name] = slices.Clone(blocks)
		}
		next.Containers[uid] = copied
	}
	maps.Copy(next.Pods, s.Pods) // their blocks are never modified
	return next
}

// reserve takes memory from the nodes in order, as much as each has.
func (s State) reserve(nodes []int, kind v1.ResourceName, size uint64) {
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

// withoutPod returns the state without the pod.
func (s State) withoutPod(uid types.UID) State {
	next := s.clone()
	for _, b := range next.ofPod(uid) {
		next.unreserve(b)
	}
	delete(next.Containers, uid)
	delete(next.Pods, uid)
	return next
}

func (s State) unreserve(b Block) {
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

// nodes returns the set of all nodes.
func (s State) nodes() (all numa.Nodes) {
	for id := range s.Nodes {
		all |= 1 << id
	}
	return all
}

// restoreOnto adds the allocations to an initial state. It omits and returns pods whose memory the
// machine no longer has.
func (s State) restoreOnto(fresh State) (State, []types.UID) {
	next := fresh.clone()
	var lost []types.UID
	for _, uid := range slices.Sorted(maps.Keys(s.Containers)) {
		if !fits(next, s.ofPod(uid)) {
			lost = append(lost, uid)
			continue
		}
		for _, b := range s.ofPod(uid) {
			next.reserve(b.NUMAAffinity, b.Type, b.Size)
		}
		next.Containers[uid] = s.Containers[uid]
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

// sameNodes reports whether the nodes of two states are equal.
func sameNodes(a, b State) bool {
	x, errX := json.Marshal(a.Nodes)
	y, errY := json.Marshal(b.Nodes)
	return errX == nil && errY == nil && string(x) == string(y)
}
