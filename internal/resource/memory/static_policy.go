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

// amounts are bytes by memory resource.
type amounts map[v1.ResourceName]uint64

// staticPolicy decides which memory a container gets. podLevel enables allocations for pods with
// pod-level resources; otherwise they get none.
type staticPolicy struct{ podLevel bool }

// requested returns the memory to allocate to the container: all requests of a container of a
// Guaranteed pod.
func (r staticPolicy) requested(p *v1.Pod, c *v1.Container) amounts {
	if pod.QOS(p) != v1.PodQOSGuaranteed || hasPodLevelResources(p) && (!r.podLevel || !pod.GuaranteedContainer(c)) {
		return nil
	}
	return memoryOf(c.Resources.Requests)
}

// hasPodLevelResources reports whether the pod has pod-level resources.
func hasPodLevelResources(p *v1.Pod) bool { return resourcehelper.IsPodLevelResourcesSet(p) }

func memoryOf(list v1.ResourceList) amounts {
	all := amounts{}
	for name, amount := range list {
		if name == v1.ResourceMemory || strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
			all[name] = uint64(max(amount.Value(), 0))
		}
	}
	return all
}

// podRequested returns the most memory that the pod's containers have at the same time.
func (r staticPolicy) podRequested(p *v1.Pod) amounts {
	if hasPodLevelResources(p) {
		return r.podLevelRequested(p)
	}
	starting, longRunning := amounts{}, amounts{}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		for name, n := range r.requested(p, c) {
			if pod.IsSidecar(c) {
				longRunning[name] += n
			} else {
				starting[name] = max(starting[name], longRunning[name]+n)
			}
		}
	}
	for i := range p.Spec.Containers {
		for name, n := range r.requested(p, &p.Spec.Containers[i]) {
			longRunning[name] += n
		}
	}
	for name, n := range starting {
		longRunning[name] = max(longRunning[name], n)
	}
	return longRunning
}

// reusable returns the memory of init containers, which will have ended, on exactly these nodes.
func (s State) reusable(p *v1.Pod, nodes []int, kind v1.ResourceName) (sum uint64) {
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if pod.IsSidecar(c) {
			continue
		}
		for _, b := range s.Containers[p.UID][c.Name] {
			if b.Type == kind && slices.Equal(b.NUMAAffinity, nodes) {
				sum += b.Size
			}
		}
	}
	return sum
}

// nodeHints returns the sets of NUMA nodes that have enough free memory. It prefers sets of the
// minimal size that could have enough if all were free.
func (s State) nodeHints(p *v1.Pod, requested amounts) []numa.Hint {
	all := s.nodes()
	fewest := all.Count()
	hints := []numa.Hint{}
	all.Subsets(func(nodes numa.Nodes) {
		ids := nodes.List()
		for kind, n := range requested {
			if s.sum(ids, kind, func(t *Table) uint64 { return t.Allocatable }) < n {
				return
			}
		}
		fewest = min(fewest, nodes.Count())
		if !s.conflicts(ids) && s.hasFree(p, ids, requested) {
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

func (s State) hasFree(p *v1.Pod, ids []int, requested amounts) bool {
	for kind, n := range requested {
		if s.sum(ids, kind, func(t *Table) uint64 { return t.Free })+s.reusable(p, ids, kind) < n {
			return false
		}
	}
	return true
}

// conflicts reports whether one of the nodes is already used alone or in another group.
func (s State) conflicts(ids []int) bool {
	for _, id := range ids {
		n := s.Nodes[id]
		if n.NumberOfAssignments > 0 && !slices.Equal(n.Cells, ids) {
			return true
		}
	}
	return false
}

// hintsFor returns the hints for a request. All memory resources come from the same nodes.
func (s State) hintsFor(p *v1.Pod, requested amounts) numa.Hints {
	if len(requested) == 0 {
		return nil
	}
	places := s.nodeHints(p, requested)
	hints := numa.Hints{}
	for kind := range requested {
		hints[string(kind)] = places
	}
	return hints
}

// hintsOfBlocks returns the hints for allocated memory.
func hintsOfBlocks(blocks []Block) numa.Hints {
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

// allocate allocates the container's memory from the hint's nodes, or from a superset of them if
// they do not have enough.
func (s State) allocate(p *v1.Pod, c *v1.Container, requested amounts, hint numa.Hint) (State, error) {
	if _, ok := s.Containers[p.UID][c.Name]; ok || len(requested) == 0 {
		return s, nil
	}
	nodes, err := s.choose(p, requested, hint)
	if err != nil {
		return s, err
	}
	next, ids := s.clone(), nodes.List()
	var blocks []Block
	for _, kind := range slices.Sorted(maps.Keys(requested)) {
		reused := min(requested[kind], s.reusable(p, ids, kind))
		next.takeOver(p, c, ids, kind, reused)
		next.reserve(ids, kind, requested[kind]-reused)
		blocks = append(blocks, Block{NUMAAffinity: ids, Type: kind, Size: requested[kind]})
	}
	if next.Containers[p.UID] == nil {
		next.Containers[p.UID] = map[string][]Block{}
	}
	next.Containers[p.UID][c.Name] = blocks
	return next, nil
}

// takeOver moves memory from init containers to the container, so that the containers' sum equals
// the pod's allocation.
func (s State) takeOver(p *v1.Pod, by *v1.Container, ids []int, kind v1.ResourceName, size uint64) {
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.Name == by.Name {
			return
		}
		if pod.IsSidecar(c) {
			continue
		}
		for j, b := range s.Containers[p.UID][c.Name] {
			if b.Type == kind && slices.Equal(b.NUMAAffinity, ids) {
				part := min(size, b.Size)
				s.Containers[p.UID][c.Name][j].Size -= part
				size -= part
			}
		}
	}
}

func (s State) choose(p *v1.Pod, requested amounts, hint numa.Hint) (numa.Nodes, error) {
	if hint.Nodes != 0 && s.hasFree(p, hint.Nodes.List(), requested) {
		if s.conflicts(hint.Nodes.List()) {
			return 0, errors.New("[memorymanager] preferred hint violates NUMA node allocation")
		}
		return hint.Nodes, nil
	}
	var best *numa.Hint
	for _, h := range s.nodeHints(p, requested) {
		if hint.Nodes.SubsetOf(h.Nodes) && (best == nil || h.Preferred && !best.Preferred || h.Preferred == best.Preferred && h.Nodes.LessThan(best.Nodes)) {
			best = &h
		}
	}
	switch {
	case best == nil && hint.Nodes == 0:
		return 0, errors.New("[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available")
	case best == nil:
		return 0, errors.New("[memorymanager] failed to find NUMA nodes to extend the current topology hint")
	case hint.Preferred && !best.Preferred && hint.Nodes == 0:
		return 0, errors.New("[memorymanager] failed to find the default preferred hint")
	case hint.Preferred && !best.Preferred:
		return 0, errors.New("[memorymanager] failed to find the extended preferred hint")
	}
	return best.Nodes, nil
}
