package cpu

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/utils/cpuset"

	"swiftlet/internal/resource/topology"
)

// takeByCache takes whole caches while they fit the request, and the rest from one cache whose
// first free or partly free cores have exactly that many CPUs.
func (t *selection) takeByCache() {
	cpusPerCache := len(t.m.CPUs) / t.m.Count(topology.ByCache)
	for _, cache := range t.caches() {
		if t.need >= cpusPerCache {
			t.takeCaches()
		}
		if t.need > 0 {
			t.takeFromCache(cache)
		}
		if t.need == 0 {
			return
		}
	}
}

// caches returns the caches with free CPUs, node by node; within a node, those with fewer free
// CPUs come first. A cache that several nodes share is listed with each.
func (t *selection) caches() []int {
	free := t.m.Parts(t.free, topology.ByCache)
	var all []int
	for _, part := range ordered(t.m, t.free, t.node) {
		ids := slices.Collect(maps.Keys(t.m.Parts(part, topology.ByCache)))
		slices.SortFunc(ids, func(a, b int) int { return cmp.Or(free[a].Size()-free[b].Size(), a-b) })
		all = append(all, ids...)
	}
	return all
}

// takeCaches takes caches that are completely free and fit the request.
func (t *selection) takeCaches() {
	for _, cache := range t.caches() {
		whole := t.m.Part(cache, topology.ByCache)
		if whole.IsSubsetOf(t.free) && whole.Size() <= t.need {
			t.take(whole)
		}
	}
}

func (t *selection) takeFromCache(cache int) {
	threads := t.m.ThreadsPerCore()
	cores := t.m.Parts(t.m.Part(cache, topology.ByCache).Intersection(t.free), topology.ByCore)
	first := slices.Sorted(maps.Keys(cores))
	first = first[:min(len(first), (t.need+threads-1)/threads)]
	cpus := cpuset.New()
	for _, core := range first {
		cpus = cpus.Union(cores[core])
	}
	if list := cpus.List(); t.need%2 != 0 && threads > 1 && len(list) > t.need {
		cpus = cpuset.New(list[:len(list)-1]...)
	}
	if cpus.Size() == t.need {
		t.take(cpus)
	}
}
