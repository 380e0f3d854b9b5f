package cgroup

import (
	"fmt"
	"reflect"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// EnsurePod makes p's group with its bounds, or brings the bounds up to date. It costs
// one stat where nothing is to be done.
func (t *Tree) EnsurePod(p *v1.Pod) error {
	n := t.podName(p)
	want := t.PodResources(p)
	if want.CPUQuota > 0 && t.alone != nil && t.alone(p) {
		want.CPUQuota = -1
	}
	t.mu.Lock()
	have, known := t.applied[p.UID]
	t.mu.Unlock()
	present := exists(t.hierarchy.witness(n.path(t.driver)))
	if present && known && reflect.DeepEqual(have, want) {
		return nil
	}
	err := t.writePod(p, n, want, present, known)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		delete(t.applied, p.UID) // some bounds may be written: none is known any more
		return fmt.Errorf("ensure the pod's cgroup: %w", err)
	}
	t.applied[p.UID] = want
	return nil
}

func (t *Tree) writePod(p *v1.Pod, n name, want Resources, present, known bool) error {
	if present {
		// An existing group may hold bounds that are no longer wanted. Zero would leave them.
		for _, bound := range []*int64{
			&want.CPUQuota, &want.Memory, &want.PIDs, &want.MemoryMin, &want.MemoryLow, &want.MemoryHigh,
		} {
			*bound = orNone(*bound)
		}
	}
	if present && known {
		return t.writer.set(n, want)
	}
	// A group that another process made may be in some trees only: it was ended while it
	// made or removed it.
	if err := t.restore(t.class(pod.QOS(p))); err != nil {
		return err
	}
	return t.writer.create(n, want)
}

// orNone says that a bound is to be taken back where there is none.
func orNone(bound int64) int64 {
	if bound == 0 {
		return -1
	}
	return bound
}
