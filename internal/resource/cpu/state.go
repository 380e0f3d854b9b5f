package cpu

import (
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"
)

// State is the allocation of CPUs. It is a value: its methods return a changed copy.
type State struct {
	// Shared are the CPUs of all containers without exclusive ones.
	Shared cpuset.CPUSet
	// Containers are the CPUs of containers, by pod and name.
	Containers map[types.UID]map[string]cpuset.CPUSet
	// Pods are the CPUs of pods with pod-level resources; Containers has how their containers
	// divide them.
	Pods map[types.UID]cpuset.CPUSet
}

// withContainer returns the state with the container's CPUs added.
func (s State) withContainer(uid types.UID, container string, cpus cpuset.CPUSet) State {
	s.Containers = maps.Clone(s.Containers)
	if s.Containers == nil {
		s.Containers = map[types.UID]map[string]cpuset.CPUSet{}
	}
	containers := maps.Clone(s.Containers[uid])
	if containers == nil {
		containers = map[string]cpuset.CPUSet{}
	}
	containers[container] = cpus
	s.Containers[uid] = containers
	s.Shared = s.Shared.Difference(cpus)
	return s
}

// withPod returns the state with the CPUs of a pod with pod-level resources added.
func (s State) withPod(uid types.UID, cpus cpuset.CPUSet) State {
	s.Pods = maps.Clone(s.Pods)
	if s.Pods == nil {
		s.Pods = map[types.UID]cpuset.CPUSet{}
	}
	s.Pods[uid] = cpus
	s.Shared = s.Shared.Difference(cpus)
	return s
}

// withoutPod returns the state without the pod.
func (s State) withoutPod(uid types.UID) State {
	freed := s.ofPod(uid)
	s.Containers, s.Pods = maps.Clone(s.Containers), maps.Clone(s.Pods)
	delete(s.Containers, uid)
	delete(s.Pods, uid)
	s.Shared = s.Shared.Union(freed)
	return s
}

// ofPod returns all CPUs of the pod.
func (s State) ofPod(uid types.UID) cpuset.CPUSet {
	all := cpuset.New().Union(s.Pods[uid])
	for _, cpus := range s.Containers[uid] {
		all = all.Union(cpus)
	}
	return all
}

// allocated returns the CPUs of all pods.
func (s State) allocated() cpuset.CPUSet {
	all := cpuset.New()
	for uid := range s.Containers {
		all = all.Union(s.ofPod(uid))
	}
	for uid := range s.Pods {
		all = all.Union(s.ofPod(uid))
	}
	return all
}

// check returns an error for a CPU that two pods have, or that a pod has and that is shared.
func (s State) check() error {
	seen, errs := cpuset.New(), []error(nil)
	uids := map[types.UID]bool{}
	for uid := range s.Containers {
		uids[uid] = true
	}
	for uid := range s.Pods {
		uids[uid] = true
	}
	for uid := range uids {
		cpus := s.ofPod(uid)
		if duplicate := seen.Intersection(cpus); !duplicate.IsEmpty() {
			errs = append(errs, fmt.Errorf("CPU %s is given to pod %s and to another", duplicate, uid))
		}
		seen = seen.Union(cpus)
	}
	if both := seen.Intersection(s.Shared); !both.IsEmpty() {
		errs = append(errs, fmt.Errorf("CPU %s is given to a pod and shared by all", both))
	}
	return errors.Join(errs...)
}
