package cpu

import (
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"
)

// State is who has which CPUs. It is a value: what changes it returns another.
type State struct {
	// Shared are the CPUs of all containers that have none of their own.
	Shared cpuset.CPUSet
	// Given are the CPUs of containers, by pod and name.
	Given map[types.UID]map[string]cpuset.CPUSet
	// Pods are the CPUs of pods that were given theirs as a whole; Given has how their
	// containers divide them.
	Pods map[types.UID]cpuset.CPUSet
}

// with is the state with the container's CPUs added.
func (s State) with(uid types.UID, container string, cpus cpuset.CPUSet) State {
	s.Given = maps.Clone(s.Given)
	if s.Given == nil {
		s.Given = map[types.UID]map[string]cpuset.CPUSet{}
	}
	mine := maps.Clone(s.Given[uid])
	if mine == nil {
		mine = map[string]cpuset.CPUSet{}
	}
	mine[container] = cpus
	s.Given[uid] = mine
	s.Shared = s.Shared.Difference(cpus)
	return s
}

// withPod is the state with CPUs for the pod as a whole.
func (s State) withPod(uid types.UID, cpus cpuset.CPUSet) State {
	s.Pods = maps.Clone(s.Pods)
	if s.Pods == nil {
		s.Pods = map[types.UID]cpuset.CPUSet{}
	}
	s.Pods[uid] = cpus
	s.Shared = s.Shared.Difference(cpus)
	return s
}

// without is the state after the pod's end.
func (s State) without(uid types.UID) State {
	freed := s.of(uid)
	s.Given, s.Pods = maps.Clone(s.Given), maps.Clone(s.Pods)
	delete(s.Given, uid)
	delete(s.Pods, uid)
	s.Shared = s.Shared.Union(freed)
	return s
}

// of is all that the pod has.
func (s State) of(uid types.UID) cpuset.CPUSet {
	all := cpuset.New().Union(s.Pods[uid])
	for _, cpus := range s.Given[uid] {
		all = all.Union(cpus)
	}
	return all
}

// taken is all that is given to somebody.
func (s State) taken() cpuset.CPUSet {
	all := cpuset.New()
	for uid := range s.Given {
		all = all.Union(s.of(uid))
	}
	for uid := range s.Pods {
		all = all.Union(s.of(uid))
	}
	return all
}

// check finds what cannot be: a CPU that two pods have, or that one has and all share.
func (s State) check() error {
	seen, errs := cpuset.New(), []error(nil)
	uids := map[types.UID]bool{}
	for uid := range s.Given {
		uids[uid] = true
	}
	for uid := range s.Pods {
		uids[uid] = true
	}
	for uid := range uids {
		mine := s.of(uid)
		if twice := seen.Intersection(mine); !twice.IsEmpty() {
			errs = append(errs, fmt.Errorf("CPU %s is given to pod %s and to another", twice, uid))
		}
		seen = seen.Union(mine)
	}
	if both := seen.Intersection(s.Shared); !both.IsEmpty() {
		errs = append(errs, fmt.Errorf("CPU %s is given to a pod and shared by all", both))
	}
	return errors.Join(errs...)
}
