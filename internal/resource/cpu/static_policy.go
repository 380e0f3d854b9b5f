package cpu

import (
	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/cpuset"

	"swiftlet/internal/config"
	"swiftlet/internal/pod"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/topology"
)

// staticPolicy decides which CPUs a container gets.
type staticPolicy struct {
	machine *topology.Machine
	options Options
	// reserved are never allocated exclusively.
	reserved cpuset.CPUSet
	// podLevel enables exclusive CPUs for pods with pod-level resources.
	podLevel bool
}

// newStaticPolicy reserves the given CPUs or, if there are none, chooses count CPUs.
func newStaticPolicy(m *topology.Machine, o Options, reserved cpuset.CPUSet, count int, podLevel bool) (staticPolicy, error) {
	r := staticPolicy{machine: m, options: o, reserved: reserved, podLevel: podLevel}
	if o.BySocket && m.Count(topology.BySocket) > m.Count(topology.ByNode) {
		return r, invalidOption(bySocket, "needs a machine with no more sockets than NUMA nodes")
	}
	if err := m.CheckOnline(reserved); err != nil {
		return r, config.Invalid("reservedSystemCPUs", "%s", err)
	}
	if !reserved.IsEmpty() {
		return r, nil
	}
	if count <= 0 {
		return r, config.Invalid("cpuManagerPolicy", "static needs a reserved CPU: set reservedSystemCPUs, or cpu in systemReserved or kubeReserved")
	}
	takeOptions := o
	takeOptions.FullCores = false // a reservation may split a core, whose rest is then not allocated
	reserved, err := take(m, takeOptions, m.All(), count)
	if err != nil {
		return r, config.Invalid("cpuManagerPolicy", "static cannot reserve the %d CPUs of systemReserved and kubeReserved: %s", count, err)
	}
	r.reserved = reserved
	return r, nil
}

// sharedPool returns the shared CPUs without any exclusive allocation.
func (r staticPolicy) sharedPool() cpuset.CPUSet {
	if r.options.StrictReservation {
		return r.machine.All().Difference(r.reserved)
	}
	return r.machine.All()
}

// available returns the CPUs that can be allocated to a container of the pod: the free ones, and
// the reusable ones of the pod's init containers.
func (r staticPolicy) available(s State, p *v1.Pod) cpuset.CPUSet {
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

// reusable returns the CPUs of init containers that end before the other containers start.
func (r staticPolicy) reusable(s State, p *v1.Pod) cpuset.CPUSet {
	init, longRunning := cpuset.New(), cpuset.New()
	for c, kind := range pod.Containers(p) {
		cpus, ok := s.Containers[p.UID][c.Name]
		switch {
		case !ok:
		case kind == pod.Init && !pod.IsSidecar(c):
			init = init.Union(cpus)
		default:
			longRunning = longRunning.Union(cpus)
		}
	}
	return init.Difference(longRunning)
}

// hasPodLevelResources reports whether the pod has pod-level resources.
func hasPodLevelResources(p *v1.Pod) bool { return resourcehelper.IsPodLevelResourcesSet(p) }

// requestedCPUs returns the number of exclusive CPUs of the container: whole CPUs of a Guaranteed
// pod.
func (r staticPolicy) requestedCPUs(p *v1.Pod, c *v1.Container) int {
	if pod.QOS(p) != v1.PodQOSGuaranteed || hasPodLevelResources(p) && (!r.podLevel || !pod.GuaranteedContainer(c)) {
		return 0
	}
	request := c.Resources.Requests[v1.ResourceCPU]
	if request.Value()*1000 != request.MilliValue() {
		return 0
	}
	return int(request.Value())
}

// podRequestedCPUs returns the largest number of exclusive CPUs that the pod's containers have at
// the same time.
func (r staticPolicy) podRequestedCPUs(p *v1.Pod) int {
	if hasPodLevelResources(p) {
		if !r.podLevel || pod.QOS(p) != v1.PodQOSGuaranteed {
			return 0
		}
		request := p.Spec.Resources.Requests[v1.ResourceCPU]
		if request.Value()*1000 != request.MilliValue() {
			return 0
		}
		return int(request.Value())
	}
	starting, longRunning := 0, 0
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if n := r.requestedCPUs(p, c); pod.IsSidecar(c) {
			longRunning += n
		} else {
			starting = max(starting, longRunning+n)
		}
	}
	for i := range p.Spec.Containers {
		longRunning += r.requestedCPUs(p, &p.Spec.Containers[i])
	}
	return max(starting, longRunning)
}

// allocate allocates the container's CPUs, from the hint's nodes first.
func (r staticPolicy) allocate(s State, p *v1.Pod, c *v1.Container, hint numa.Hint) (State, error) {
	n := r.requestedCPUs(p, c)
	if _, ok := s.Containers[p.UID][c.Name]; ok || n == 0 {
		return s, nil
	}
	cpus, err := r.choose(r.available(s, p), n, hint)
	if err != nil {
		return s, err
	}
	return s.withContainer(p.UID, c.Name, cpus), nil
}

// choose takes n of the free CPUs, near the hint's nodes first.
func (r staticPolicy) choose(free cpuset.CPUSet, n int, hint numa.Hint) (cpuset.CPUSet, error) {
	if err := r.checkSMTAlignment(free, n); err != nil {
		return cpuset.New(), err
	}
	near := cpuset.New()
	if hint.Nodes != 0 {
		near = free.Intersection(r.cpusNear(hint.Nodes))
	}
	got, err := take(r.machine, r.options, near, min(n, near.Size()))
	if err == nil && got.Size() < n {
		var more cpuset.CPUSet
		more, err = take(r.machine, r.options, free.Difference(got), n-got.Size())
		got = got.Union(more)
	}
	if err != nil && r.options.FullCores { // cores of different sizes may not add up to n
		return cpuset.New(), r.notEnoughCores(free, n)
	}
	return got, err
}

// checkSMTAlignment checks that whole cores can satisfy the request, if FullCores is set.
func (r staticPolicy) checkSMTAlignment(free cpuset.CPUSet, n int) error {
	threads := r.machine.ThreadsPerCore()
	switch {
	case !r.options.FullCores:
		return nil
	case n%threads != 0:
		return pod.Reject("SMTAlignmentError", "SMT Alignment Error: requested %d cpus not multiple cpus per core = %d", n, threads)
	case n > free.Size():
		return r.notEnoughCores(free, n)
	}
	return nil
}

func (r staticPolicy) notEnoughCores(free cpuset.CPUSet, n int) error {
	return pod.Reject("SMTAlignmentError",
		"SMT Alignment Error: not enough free physical CPUs: available physical CPUs = %d, requested CPUs = %d, CPUs per core = %d",
		free.Size(), n, r.machine.ThreadsPerCore())
}

// cpusNear returns the CPUs of the nodes, or with BySocket of their sockets.
func (r staticPolicy) cpusNear(nodes numa.Nodes) cpuset.CPUSet {
	near := cpuset.New(r.cpusOfNodes(nodes)...)
	if r.options.BySocket {
		return r.machine.Expand(near, topology.BySocket)
	}
	return near
}

func (r staticPolicy) cpusOfNodes(nodes numa.Nodes) []int {
	var ids []int
	for id, c := range r.machine.CPUs {
		if nodes.Has(c.Node) {
			ids = append(ids, id)
		}
	}
	return ids
}
