package cpu

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/cpuset"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/topology"
)

// rules decide who is given which CPUs.
type rules struct {
	machine *topology.Machine
	options Options
	// reserved are never given to one container alone.
	reserved cpuset.CPUSet
	// podLevel has pods that ask as a whole given as a whole; otherwise they share.
	podLevel bool
}

// newRules reserves the given CPUs or, where none are named, as many as the count says.
func newRules(m *topology.Machine, o Options, named cpuset.CPUSet, count int, podLevel bool) (rules, error) {
	r := rules{machine: m, options: o, reserved: named, podLevel: podLevel}
	if o.BySocket && m.Count(topology.BySocket) > m.Count(topology.ByNode) {
		return r, fmt.Errorf("cpuManagerPolicyOptions: %s needs a machine with no more sockets than NUMA nodes", bySocket)
	}
	if err := m.Lacks(named); err != nil {
		return r, fmt.Errorf("reservedSystemCPUs: %w", err)
	}
	if !named.IsEmpty() {
		return r, nil
	}
	if count <= 0 {
		return r, fmt.Errorf("cpuManagerPolicy static: CPU must be reserved for the rest: set reservedSystemCPUs, or cpu in systemReserved or kubeReserved")
	}
	free := o
	free.FullCores = false // part of a core can be reserved; the rest of it is not given then
	reserved, err := take(m, free, m.All(), count)
	if err != nil {
		return r, fmt.Errorf("reserve %d CPUs: %w", count, err)
	}
	r.reserved = reserved
	return r, nil
}

// pool is all that can be shared while nothing is given.
func (r rules) pool() cpuset.CPUSet {
	if r.options.StrictReservation {
		return r.machine.All().Difference(r.reserved)
	}
	return r.machine.All()
}

// available is what can be given to a container of the pod: what nobody has, and what the
// pod's init containers have that will have ended.
func (r rules) available(s State, p *v1.Pod) cpuset.CPUSet {
	free := s.Shared.Difference(r.reserved).Union(r.reusable(s, p))
	if !r.options.FullCores {
		return free
	}
	whole := cpuset.New()
	for core, part := range r.machine.Parts(free, topology.ByCore) {
		if part.Size() == r.machine.Part(core, topology.ByCore).Size() {
			whole = whole.Union(part)
		}
	}
	return whole
}

// reusable are the CPUs of init containers that end before the others start.
func (r rules) reusable(s State, p *v1.Pod) cpuset.CPUSet {
	init, lasting := cpuset.New(), cpuset.New()
	for c, kind := range pod.Containers(p) {
		cpus, ok := s.Given[p.UID][c.Name]
		switch {
		case !ok:
		case kind == pod.Init && !pod.IsSidecar(c):
			init = init.Union(cpus)
		default:
			lasting = lasting.Union(cpus)
		}
	}
	return init.Difference(lasting)
}

// asWhole: the pod asks for its resources as a whole.
func asWhole(p *v1.Pod) bool { return resourcehelper.IsPodLevelResourcesSet(p) }

// wants is how many CPUs the container is to have for itself: whole ones of a Guaranteed pod.
func (r rules) wants(p *v1.Pod, c *v1.Container) int {
	if pod.QOS(p) != v1.PodQOSGuaranteed || asWhole(p) && (!r.podLevel || !pod.GuaranteedContainer(c)) {
		return 0
	}
	request := c.Resources.Requests[v1.ResourceCPU]
	if request.Value()*1000 != request.MilliValue() {
		return 0
	}
	return int(request.Value())
}

// podWants is how many the pod's containers are to have together, at the most demanding
// moment of its life.
func (r rules) podWants(p *v1.Pod) int {
	if asWhole(p) {
		if !r.podLevel || pod.QOS(p) != v1.PodQOSGuaranteed {
			return 0
		}
		request := p.Spec.Resources.Requests[v1.ResourceCPU]
		if request.Value()*1000 != request.MilliValue() {
			return 0
		}
		return int(request.Value())
	}
	starting, lasting := 0, 0
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if n := r.wants(p, c); pod.IsSidecar(c) {
			lasting += n
		} else {
			starting = max(starting, lasting+n)
		}
	}
	for i := range p.Spec.Containers {
		lasting += r.wants(p, &p.Spec.Containers[i])
	}
	return max(starting, lasting)
}

// allocate gives the container its CPUs, from the hint's nodes first.
func (r rules) allocate(s State, p *v1.Pod, c *v1.Container, where numa.Hint) (State, error) {
	n := r.wants(p, c)
	if _, has := s.Given[p.UID][c.Name]; has || n == 0 {
		return s, nil
	}
	cpus, err := r.choose(r.available(s, p), n, where)
	if err != nil {
		return s, err
	}
	return s.with(p.UID, c.Name, cpus), nil
}

// choose takes n of the free CPUs.
func (r rules) choose(free cpuset.CPUSet, n int, where numa.Hint) (cpuset.CPUSet, error) {
	if err := r.aligned(free, n); err != nil {
		return cpuset.New(), err
	}
	near := cpuset.New()
	if where.Nodes != 0 {
		near = free.Intersection(r.near(where.Nodes))
	}
	got, err := take(r.machine, r.options, near, min(n, near.Size()))
	if err == nil && got.Size() < n {
		var more cpuset.CPUSet
		more, err = take(r.machine, r.options, free.Difference(got), n-got.Size())
		got = got.Union(more)
	}
	if err != nil && r.options.FullCores { // cores of several sizes may not come out even
		return cpuset.New(), r.tooFew(free, n)
	}
	return got, err
}

// aligned makes sure that the request can be met by whole cores, where only those are given.
func (r rules) aligned(free cpuset.CPUSet, n int) error {
	threads := r.machine.ThreadsPerCore()
	switch {
	case !r.options.FullCores:
		return nil
	case n%threads != 0:
		return pod.Reject("SMTAlignmentError", "SMT Alignment Error: requested %d cpus not multiple cpus per core = %d", n, threads)
	case n > free.Size():
		return r.tooFew(free, n)
	}
	return nil
}

func (r rules) tooFew(free cpuset.CPUSet, n int) error {
	return pod.Reject("SMTAlignmentError",
		"SMT Alignment Error: not enough free physical CPUs: available physical CPUs = %d, requested CPUs = %d, CPUs per core = %d",
		free.Size(), n, r.machine.ThreadsPerCore())
}

// near are the CPUs of the nodes, or of the sockets that they are in.
func (r rules) near(nodes numa.Nodes) cpuset.CPUSet {
	near := cpuset.New(r.inNodes(nodes)...)
	if r.options.BySocket {
		return r.machine.Whole(near, topology.BySocket)
	}
	return near
}

func (r rules) inNodes(nodes numa.Nodes) []int {
	var ids []int
	for id, c := range r.machine.CPUs {
		if nodes.Has(c.Node) {
			ids = append(ids, id)
		}
	}
	return ids
}
