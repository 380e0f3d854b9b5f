package memory

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource/numa"
)

// podLevelRequested returns the memory requests of a pod with pod-level resources.
func (r staticPolicy) podLevelRequested(p *v1.Pod) amounts {
	if !r.podLevel || pod.QOS(p) != v1.PodQOSGuaranteed {
		return nil
	}
	all := memoryOf(p.Spec.Resources.Requests)
	maps.DeleteFunc(all, func(_ v1.ResourceName, n uint64) bool { return n == 0 })
	return all
}

// podLevelHints returns the hints for a pod with pod-level resources.
func (r staticPolicy) podLevelHints(s State, p *v1.Pod) numa.Hints {
	requested := r.podLevelRequested(p)
	if blocks, ok := s.Pods[p.UID]; ok {
		return hintsOfBlocks(blocks)
	}
	if r.checkSharedPool(p) == "" {
		return s.hintsFor(p, requested)
	}
	none := numa.Hints{}
	for kind := range requested {
		none[string(kind)] = []numa.Hint{}
	}
	return none
}

// allocatePod allocates the memory of a pod with pod-level resources and divides it: containers
// with limits get theirs, the others share the rest. Init containers use all but the sidecars'
// memory.
func (r staticPolicy) allocatePod(s State, p *v1.Pod, hint numa.Hint) (State, error) {
	all := r.podLevelRequested(p)
	if _, ok := s.Pods[p.UID]; ok || len(all) == 0 {
		return s, nil
	}
	if reason := r.checkSharedPool(p); reason != "" {
		return s, pod.Reject("EmptyPodSharedPoolError", "%s", reason)
	}
	nodes, err := s.choose(p, all, hint)
	if err != nil {
		return s, err
	}
	next, ids := s.clone(), nodes.List()
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		next.reserve(ids, kind, all[kind])
	}
	next.Pods[p.UID] = blocks(all, ids)
	next.Containers[p.UID] = r.divide(p, all, ids)
	return next, nil
}

// divide divides the pod's memory among its containers.
func (r staticPolicy) divide(p *v1.Pod, all amounts, ids []int) map[string][]Block {
	containers, rest := map[string][]Block{}, maps.Clone(all)
	take := func(requested amounts) {
		for kind, n := range requested {
			rest[kind] -= min(rest[kind], n)
		}
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		switch requested := r.requested(p, c); {
		case len(requested) == 0 && pod.IsSidecar(c): // shares with the main containers
		case len(requested) == 0:
			containers[c.Name] = blocks(rest, ids)
		default:
			containers[c.Name] = blocks(requested, ids)
			if pod.IsSidecar(c) {
				take(requested)
			}
		}
	}
	for i := range p.Spec.Containers {
		if requested := r.requested(p, &p.Spec.Containers[i]); len(requested) > 0 {
			containers[p.Spec.Containers[i].Name] = blocks(requested, ids)
			take(requested)
		}
	}
	for c, kind := range pod.Containers(p) {
		if _, ok := containers[c.Name]; !ok && kind != pod.Ephemeral {
			containers[c.Name] = blocks(rest, ids)
		}
	}
	return containers
}

func blocks(of amounts, ids []int) []Block {
	all := []Block{}
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		if of[kind] > 0 {
			all = append(all, Block{NUMAAffinity: ids, Type: kind, Size: of[kind]})
		}
	}
	return all
}

// checkSharedPool returns why no memory remains for the pod's shared containers; empty if some does.
func (r staticPolicy) checkSharedPool(p *v1.Pod) string {
	all, exclusive, shared := r.podLevelRequested(p), amounts{}, false
	empty := func() (v1.ResourceName, bool) {
		for _, kind := range slices.Sorted(maps.Keys(all)) {
			if exclusive[kind] >= all[kind] {
				return kind, true
			}
		}
		return "", false
	}
	addLongRunning := func(requested amounts) {
		shared = shared || len(requested) == 0
		for kind, n := range requested {
			exclusive[kind] += n
		}
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		requested := r.requested(p, c)
		if pod.IsSidecar(c) {
			addLongRunning(requested)
		} else if kind, none := empty(); none && len(requested) == 0 {
			return fmt.Sprintf("pod rejected, pod has shared init containers but no %s available for them", kind)
		}
	}
	for i := range p.Spec.Containers {
		addLongRunning(r.requested(p, &p.Spec.Containers[i]))
	}
	if kind, none := empty(); none && shared {
		return fmt.Sprintf("pod rejected, sum of exclusive container %s requests equals pod budget, leaving no memory for shared containers", kind)
	}
	return ""
}
