package cpu

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/cpuset"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource/numa"
)

// allocatePod gives a pod that asks as a whole its CPUs, and divides them: containers that
// are bound to whole CPUs have theirs, the others share what is left. Init containers that
// end use what is not a sidecar's.
func (r rules) allocatePod(s State, p *v1.Pod, where numa.Hint) (State, error) {
	n := r.podWants(p)
	if _, has := s.Pods[p.UID]; has || n == 0 {
		return s, nil
	}
	if why := r.leavesNone(p); why != "" {
		return s, pod.Reject("EmptyPodSharedPoolError", "%s", why)
	}
	all, err := r.choose(r.available(s, p), n, where)
	if err != nil {
		return s, err
	}
	next := s.withPod(p.UID, all)
	rest := all
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		n := r.wants(p, c)
		if n == 0 {
			if !pod.IsSidecar(c) {
				next = next.with(p.UID, c.Name, rest)
			}
			continue
		}
		cpus, err := r.within(rest, n)
		if err != nil {
			return s, err
		}
		next = next.with(p.UID, c.Name, cpus)
		if pod.IsSidecar(c) {
			rest = rest.Difference(cpus)
		}
	}
	for i := range p.Spec.Containers {
		if n := r.wants(p, &p.Spec.Containers[i]); n > 0 {
			cpus, err := r.within(rest, n)
			if err != nil {
				return s, err
			}
			next = next.with(p.UID, p.Spec.Containers[i].Name, cpus)
			rest = rest.Difference(cpus)
		}
	}
	return r.shareRest(next, p, rest), nil
}

// within divides what a pod has, in which part of a core may be what is left.
func (r rules) within(cpus cpuset.CPUSet, n int) (cpuset.CPUSet, error) {
	o := r.options
	o.FullCores = false
	return take(r.machine, o, cpus, n)
}

// shareRest gives what is left to all containers that have nothing of their own.
func (r rules) shareRest(s State, p *v1.Pod, rest cpuset.CPUSet) State {
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if _, has := s.Given[p.UID][list[i].Name]; !has {
				s = s.with(p.UID, list[i].Name, rest)
			}
		}
	}
	return s
}

// leavesNone says why the pod's containers cannot divide its CPUs; empty if they can.
func (r rules) leavesNone(p *v1.Pod) string {
	all, own, shared := r.podWants(p), 0, false
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		n := r.wants(p, c)
		switch {
		case !pod.IsSidecar(c) && n == 0 && own >= all:
			return "pod rejected, pod has shared init containers but no cpus available for them"
		case pod.IsSidecar(c):
			own, shared = own+n, shared || n == 0
		}
	}
	for i := range p.Spec.Containers {
		n := r.wants(p, &p.Spec.Containers[i])
		own, shared = own+n, shared || n == 0
	}
	if shared && own >= all {
		return "pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared containers"
	}
	return ""
}
