package memory

import (
	"errors"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource/numa"
)

// amounts are bytes by kind of memory.
type amounts map[v1.ResourceName]uint64

// rules say who is given memory. podLevel has pods that ask as a whole given as a whole;
// otherwise they are given none.
type rules struct{ podLevel bool }

// wants is the memory that the container is to have for itself: all that a container of a
// Guaranteed pod asks for.
func (r rules) wants(p *v1.Pod, c *v1.Container) amounts {
	if pod.QOS(p) != v1.PodQOSGuaranteed || asWhole(p) && (!r.podLevel || !pod.GuaranteedContainer(c)) {
		return nil
	}
	return memoryOf(c.Resources.Requests)
}

// asWhole: the pod asks for its resources as a whole.
func asWhole(p *v1.Pod) bool { return resourcehelper.IsPodLevelResourcesSet(p) }

func memoryOf(list v1.ResourceList) amounts {
	all := amounts{}
	for name, amount := range list {
		if name == v1.ResourceMemory || strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
			all[name] = uint64(max(amount.Value(), 0))
		}
	}
	return all
}

// podWants is what the pod's containers are to have together, at the most demanding moment.
func (r rules) podWants(p *v1.Pod) amounts {
	if asWhole(p) {
		return r.wholePodWants(p)
	}
	starting, lasting := amounts{}, amounts{}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		for name, n := range r.wants(p, c) {
			if pod.IsSidecar(c) {
				lasting[name] += n
			} else {
				starting[name] = max(starting[name], lasting[name]+n)
			}
		}
	}
	for i := range p.Spec.Containers {
		for name, n := range r.wants(p, &p.Spec.Containers[i]) {
			lasting[name] += n
		}
	}
	for name, n := range starting {
		lasting[name] = max(lasting[name], n)
	}
	return lasting
}

// reusable is what init containers that will have ended have on just these nodes.
func (s State) reusable(p *v1.Pod, nodes []int, kind v1.ResourceName) (sum uint64) {
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if pod.IsSidecar(c) {
			continue
		}
		for _, b := range s.Given[p.UID][c.Name] {
			if b.Type == kind && slices.Equal(b.NUMAAffinity, nodes) {
				sum += b.Size
			}
		}
	}
	return sum
}

// places are the sets of nodes that have all of it. Sets as small as any that could have
// it, were all memory free, are preferred.
func (s State) places(p *v1.Pod, want amounts) []numa.Hint {
	all := s.nodes()
	fewest := all.Count()
	hints := []numa.Hint{}
	all.Subsets(func(nodes numa.Nodes) {
		ids := nodes.List()
		for kind, n := range want {
			if s.sum(ids, kind, func(t *Table) uint64 { return t.Allocatable }) < n {
				return
			}
		}
		fewest = min(fewest, nodes.Count())
		if !s.mixes(ids) && s.has(p, ids, want) {
			hints = append(hints, numa.Hint{Nodes: nodes})
		}
	})
	for i := range hints {
		hints[i].Preferred = hints[i].Nodes.Count() == fewest
	}
	return hints
}

func (s State) sum(ids []int, kind v1.ResourceName, of func(*Table) uint64) (sum uint64) {
	for _, id := range ids {
		if t := s.Nodes[id].MemoryMap[kind]; t != nil {
			sum += of(t)
		}
	}
	return sum
}

func (s State) has(p *v1.Pod, ids []int, want amounts) bool {
	for kind, n := range want {
		if s.sum(ids, kind, func(t *Table) uint64 { return t.Free })+s.reusable(p, ids, kind) < n {
			return false
		}
	}
	return true
}

// mixes: the nodes are used otherwise, one of them alone or with others than these.
func (s State) mixes(ids []int) bool {
	for _, id := range ids {
		n := s.Nodes[id]
		if n.NumberOfAssignments > 0 && !slices.Equal(n.Cells, ids) {
			return true
		}
	}
	return false
}

// hintsFor says where the memory could come from; all kinds of it come from the same nodes.
func (s State) hintsFor(p *v1.Pod, want amounts) numa.Hints {
	if len(want) == 0 {
		return nil
	}
	places := s.places(p, want)
	hints := numa.Hints{}
	for kind := range want {
		hints[string(kind)] = places
	}
	return hints
}

// hintsOf says where the memory is that the container has.
func hintsOf(blocks []Block) numa.Hints {
	hints := numa.Hints{}
	for _, b := range blocks {
		var nodes numa.Nodes
		for _, id := range b.NUMAAffinity {
			nodes |= 1 << id
		}
		hints[string(b.Type)] = []numa.Hint{{Nodes: nodes, Preferred: true}}
	}
	return hints
}

// allocate gives the container its memory, from the hint's nodes if they have it and from
// more than those if they do not.
func (s State) allocate(p *v1.Pod, c *v1.Container, want amounts, where numa.Hint) (State, error) {
	if _, has := s.Given[p.UID][c.Name]; has || len(want) == 0 {
		return s, nil
	}
	nodes, err := s.choose(p, want, where)
	if err != nil {
		return s, err
	}
	next, ids := s.clone(), nodes.List()
	var blocks []Block
	for _, kind := range slices.Sorted(maps.Keys(want)) {
		again := min(want[kind], s.reusable(p, ids, kind))
		next.reuse(p, c, ids, kind, again)
		next.charge(ids, kind, want[kind]-again)
		blocks = append(blocks, Block{NUMAAffinity: ids, Type: kind, Size: want[kind]})
	}
	if next.Given[p.UID] == nil {
		next.Given[p.UID] = map[string][]Block{}
	}
	next.Given[p.UID][c.Name] = blocks
	return next, nil
}

// reuse takes memory over from init containers, so that the sum of what the pod's
// containers have is what the pod has.
func (s State) reuse(p *v1.Pod, by *v1.Container, ids []int, kind v1.ResourceName, size uint64) {
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.Name == by.Name {
			return
		}
		if pod.IsSidecar(c) {
			continue
		}
		for j, b := range s.Given[p.UID][c.Name] {
			if b.Type == kind && slices.Equal(b.NUMAAffinity, ids) {
				part := min(size, b.Size)
				s.Given[p.UID][c.Name][j].Size -= part
				size -= part
			}
		}
	}
}

func (s State) choose(p *v1.Pod, want amounts, where numa.Hint) (numa.Nodes, error) {
	if where.Nodes != 0 && s.has(p, where.Nodes.List(), want) {
		if s.mixes(where.Nodes.List()) {
			return 0, errors.New("[memorymanager] preferred hint violates NUMA node allocation")
		}
		return where.Nodes, nil
	}
	var best *numa.Hint
	for _, h := range s.places(p, want) {
		if where.Nodes.Within(h.Nodes) && (best == nil || h.Preferred && !best.Preferred || h.Preferred == best.Preferred && h.Nodes.Narrower(best.Nodes)) {
			best = &h
		}
	}
	switch {
	case best == nil && where.Nodes == 0:
		return 0, errors.New("[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available")
	case best == nil:
		return 0, errors.New("[memorymanager] failed to find NUMA nodes to extend the current topology hint")
	case where.Preferred && !best.Preferred && where.Nodes == 0:
		return 0, errors.New("[memorymanager] failed to find the default preferred hint")
	case where.Preferred && !best.Preferred:
		return 0, errors.New("[memorymanager] failed to find the extended preferred hint")
	}
	return best.Nodes, nil
}
