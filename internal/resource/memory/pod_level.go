package memory

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource/numa"
)

// wholePodWants is what a pod asks for as a whole.
func (r rules) wholePodWants(p *v1.Pod) amounts {
	if !r.podLevel || pod.QOS(p) != v1.PodQOSGuaranteed {
		return nil
	}
	all := memoryOf(p.Spec.Resources.Requests)
	maps.DeleteFunc(all, func(_ v1.ResourceName, n uint64) bool { return n == 0 })
	return all
}

// wholePodHints says where the memory of a pod that asks as a whole could come from, or does.
func (r rules) wholePodHints(s State, p *v1.Pod) numa.Hints {
	want := r.wholePodWants(p)
	if blocks, has := s.Pods[p.UID]; has {
		return hintsOf(blocks)
	}
	if r.leavesNone(p) == "" {
		return s.hintsFor(p, want)
	}
	none := numa.Hints{}
	for kind := range want {
		none[string(kind)] = []numa.Hint{}
	}
	return none
}

// allocatePod gives a pod that asks as a whole its memory, and divides it: containers that
// are bound to an amount have theirs, the others share what is left. Init containers that
// end use what is not a sidecar's.
func (r rules) allocatePod(s State, p *v1.Pod, where numa.Hint) (State, error) {
	all := r.wholePodWants(p)
	if _, has := s.Pods[p.UID]; has || len(all) == 0 {
		return s, nil
	}
	if why := r.leavesNone(p); why != "" {
		return s, pod.Reject("EmptyPodSharedPoolError", "%s", why)
	}
	nodes, err := s.choose(p, all, where)
	if err != nil {
		return s, err
	}
	next, ids := s.clone(), nodes.List()
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		next.charge(ids, kind, all[kind])
	}
	next.Pods[p.UID] = blocks(all, ids)
	next.Given[p.UID] = r.divide(p, all, ids)
	return next, nil
}

// divide says what each container of the pod has of all that the pod has.
func (r rules) divide(p *v1.Pod, all amounts, ids []int) map[string][]Block {
	given, rest := map[string][]Block{}, maps.Clone(all)
	take := func(want amounts) {
		for kind, n := range want {
			rest[kind] -= min(rest[kind], n)
		}
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		switch want := r.wants(p, c); {
		case len(want) == 0 && pod.IsSidecar(c): // shares with the lasting ones
		case len(want) == 0:
			given[c.Name] = blocks(rest, ids)
		default:
			given[c.Name] = blocks(want, ids)
			if pod.IsSidecar(c) {
				take(want)
			}
		}
	}
	for i := range p.Spec.Containers {
		if want := r.wants(p, &p.Spec.Containers[i]); len(want) > 0 {
			given[p.Spec.Containers[i].Name] = blocks(want, ids)
			take(want)
		}
	}
	for c, kind := range pod.Containers(p) {
		if _, has := given[c.Name]; !has && kind != pod.Ephemeral {
			given[c.Name] = blocks(rest, ids)
		}
	}
	return given
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

// leavesNone says why the pod's containers cannot divide its memory; empty if they can.
func (r rules) leavesNone(p *v1.Pod) string {
	all, own, shared := r.wholePodWants(p), amounts{}, false
	empty := func() (v1.ResourceName, bool) {
		for _, kind := range slices.Sorted(maps.Keys(all)) {
			if own[kind] >= all[kind] {
				return kind, true
			}
		}
		return "", false
	}
	lasts := func(want amounts) {
		shared = shared || len(want) == 0
		for kind, n := range want {
			own[kind] += n
		}
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		want := r.wants(p, c)
		if pod.IsSidecar(c) {
			lasts(want)
		} else if kind, none := empty(); none && len(want) == 0 {
			return fmt.Sprintf("pod rejected, pod has shared init containers but no %s available for them", kind)
		}
	}
	for i := range p.Spec.Containers {
		lasts(r.wants(p, &p.Spec.Containers[i]))
	}
	if kind, none := empty(); none && shared {
		return fmt.Sprintf("pod rejected, sum of exclusive container %s requests equals pod budget, leaving no memory for shared containers", kind)
	}
	return ""
}
