package cpu

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/cpuset"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource/numa"
)

// allocatePod allocates the CPUs of a pod with pod-level resources and divides them: containers
// that request whole CPUs get theirs exclusively, the others share the rest. Init containers use
// all but the sidecars' CPUs.
func (r staticPolicy) allocatePod(s State, p *v1.Pod, hint numa.Hint) (State, error) {
	n := r.podRequestedCPUs(p)
	if _, ok := s.Pods[p.UID]; ok || n == 0 {
		return s, nil
	}
	if reason := r.checkSharedPool(p); reason != "" {
		return s, pod.Reject("EmptyPodSharedPoolError", "%s", reason)
	}
	all, err := r.choose(r.available(s, p), n, hint)
	if err != nil {
		return s, err
	}
	next := s.withPod(p.UID, all)
	rest := all
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		n := r.requestedCPUs(p, c)
		if n == 0 {
			if !pod.IsSidecar(c) {
				next = next.withContainer(p.UID, c.Name, rest)
			}
			continue
		}
		cpus, err := r.takeFromPod(rest, n)
		if err != nil {
			return s, err
		}
		next = next.withContainer(p.UID, c.Name, cpus)
		if pod.IsSidecar(c) {
			rest = rest.Difference(cpus)
		}
	}
	for i := range p.Spec.Containers {
		if n := r.requestedCPUs(p, &p.Spec.Containers[i]); n > 0 {
			cpus, err := r.takeFromPod(rest, n)
			if err != nil {
				return s, err
			}
			next = next.withContainer(p.UID, p.Spec.Containers[i].Name, cpus)
			rest = rest.Difference(cpus)
		}
	}
	return r.shareRest(next, p, rest), nil
}

// takeFromPod takes n of a pod's CPUs, which may split a core.
func (r staticPolicy) takeFromPod(cpus cpuset.CPUSet, n int) (cpuset.CPUSet, error) {
	o := r.options
	o.FullCores = false
	return take(r.machine, o, cpus, n)
}

// shareRest assigns the remaining CPUs to all containers without exclusive ones.
func (r staticPolicy) shareRest(s State, p *v1.Pod, rest cpuset.CPUSet) State {
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if _, ok := s.Containers[p.UID][list[i].Name]; !ok {
				s = s.withContainer(p.UID, list[i].Name, rest)
			}
		}
	}
	return s
}

// checkSharedPool returns why no CPUs remain for the pod's shared containers; empty if some do.
func (r staticPolicy) checkSharedPool(p *v1.Pod) string {
	all, exclusive, shared := r.podRequestedCPUs(p), 0, false
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		n := r.requestedCPUs(p, c)
		switch {
		case !pod.IsSidecar(c) && n == 0 && exclusive >= all:
			return "pod rejected, pod has shared init containers but no cpus available for them"
		case pod.IsSidecar(c):
			exclusive, shared = exclusive+n, shared || n == 0
		}
	}
	for i := range p.Spec.Containers {
		n := r.requestedCPUs(p, &p.Spec.Containers[i])
		exclusive, shared = exclusive+n, shared || n == 0
	}
	if shared && exclusive >= all {
		return "pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared containers"
	}
	return ""
}
