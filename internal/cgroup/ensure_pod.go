package cgroup

import (
	"fmt"
	"reflect"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// EnsurePod creates p's cgroup, or updates its limits. It costs one stat where both are up to
// date.
func (t *Tree) EnsurePod(p *v1.Pod) error {
	n := t.podCgroup(p)
	desired := t.PodResources(p)
	if desired.CPUQuota > 0 && t.hasExclusiveCPUs != nil && t.hasExclusiveCPUs(p) {
		desired.CPUQuota = -1
	}
	t.mu.Lock()
	applied, known := t.applied[p.UID]
	t.mu.Unlock()
	existing := exists(t.hierarchy.primaryDir(n.path(t.driver)))
	if existing && known && reflect.DeepEqual(applied, desired) {
		return nil
	}
	err := t.writePod(p, n, desired, existing, known)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		delete(t.applied, p.UID) // some limits may have been written
		return fmt.Errorf("ensure the pod's cgroup: %w", err)
	}
	t.applied[p.UID] = desired
	return nil
}

func (t *Tree) writePod(p *v1.Pod, n cgroupName, desired Resources, existing, known bool) error {
	if existing {
		// An existing cgroup may have limits that the pod no longer has. Zero would leave them.
		for _, limit := range []*int64{
			&desired.CPUQuota, &desired.Memory, &desired.PIDs, &desired.MemoryMin, &desired.MemoryLow, &desired.MemoryHigh,
		} {
			*limit = orUnset(*limit)
		}
	}
	if existing && known {
		return t.writer.set(n, desired)
	}
	// A cgroup of a previous kubelet may exist for some controllers only: that kubelet was killed
	// while it created or removed the cgroup.
	if err := t.recreateParents(t.qosCgroup(pod.QOS(p))); err != nil {
		return err
	}
	return t.writer.create(n, desired)
}

// orUnset returns -1, which removes a limit from the kernel, where limit is 0.
func orUnset(limit int64) int64 {
	if limit == 0 {
		return -1
	}
	return limit
}
