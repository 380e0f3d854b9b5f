package cgroup

import (
	"fmt"
	"reflect"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

// EnsurePod makes p's group with its bounds, or brings the bounds up to date. It costs
// one stat where nothing is to be done.
func (t *Tree) EnsurePod(p *v1.Pod) error {
	n := t.podName(p)
	want := t.PodResources(p)
	t.mu.Lock()
	have, known := t.applied[p.UID]
	t.mu.Unlock()
	present := exists(t.hierarchy.witness(n.path(t.driver)))
	if present && known && reflect.DeepEqual(have, want) {
		return nil
	}
	if err := t.writePod(p, n, want, present); err != nil {
		return fmt.Errorf("ensure the pod's cgroup: %w", err)
	}
	t.mu.Lock()
	t.applied[p.UID] = want
	t.mu.Unlock()
	return nil
}

func (t *Tree) writePod(p *v1.Pod, n name, want Resources, present bool) error {
	if !present {
		if err := t.restore(t.class(pod.QOS(p))); err != nil {
			return err
		}
		return t.writer.create(n, want)
	}
	// An existing group may hold bounds that are no longer wanted. Zero would leave them.
	if want.CPUQuota == 0 {
		want.CPUQuota = -1
	}
	if want.Memory == 0 {
		want.Memory = -1
	}
	if want.PIDs == 0 {
		want.PIDs = -1
	}
	return t.writer.set(n, want)
}

func cpuRequest(p *v1.Pod) int64 {
	requests := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
	return requests.Cpu().MilliValue()
}
