package podsync

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
)

// largest is the pod with the larger of what it has and what it was given, container by
// container. No limit is the largest.
func largest(p *v1.Pod, have pod.Resources) *v1.Pod {
	both := p.DeepCopy()
	both.Status.QOSClass = pod.QOS(p) // no mixture of the two is of another class
	if both.Spec.Resources != nil && have.Pod != nil {
		both.Spec.Resources = larger(p.Spec.Resources, have.Pod)
	}
	for _, list := range [][]v1.Container{both.Spec.InitContainers, both.Spec.Containers} {
		for i := range list {
			if has, known := have.Containers[list[i].Name]; known {
				list[i].Resources = *larger(&list[i].Resources, &has)
			}
		}
	}
	return both
}

func larger(a, b *v1.ResourceRequirements) *v1.ResourceRequirements {
	out := a.DeepCopy()
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		if amount, ok := b.Requests[name]; ok && amount.Cmp(out.Requests[name]) > 0 {
			if out.Requests == nil {
				out.Requests = v1.ResourceList{}
			}
			out.Requests[name] = amount
		}
		limit, bounded := b.Limits[name]
		switch own, ok := out.Limits[name]; {
		case !ok || own.IsZero():
		case !bounded || limit.IsZero():
			delete(out.Limits, name)
		case limit.Cmp(own) > 0:
			out.Limits[name] = limit
		}
	}
	return out
}

// guardMemory refuses limits below what is in use: the kernel would not take them, or kill.
func (s *Steps) guardMemory(ctx context.Context, p *v1.Pod, observed *pod.Observed, have pod.Resources, updates []plan.Update) error {
	had, _ := have.Apply(p)
	before, wanted := podMemory(had), podMemory(p)
	whole := wanted != 0 && (before == 0 || wanted < before)
	each := map[string]int64{}
	for _, u := range updates {
		bounded := pod.Bounded(p, u.Container)
		if to := pod.AmountsOf(&bounded).MemoryLimit; to != 0 && (u.Have.MemoryLimit == 0 || to < u.Have.MemoryLimit) {
			each[u.Container.Name] = to
		}
	}
	if !whole && len(each) == 0 {
		return nil
	}
	used, usedBy, err := s.deps.Resizing.Usage.Memory(ctx, p, observed)
	if err != nil {
		return fmt.Errorf("read the pod's memory usage: %w", err)
	}
	var low []error
	if whole && used >= uint64(wanted) {
		low = append(low, fmt.Errorf("attempting to set pod memory limit (%d) below current usage (%d)", wanted, used))
	}
	for _, u := range updates {
		name := u.Container.Name
		to, shrinks := each[name]
		switch used, known := usedBy[name]; {
		case !shrinks:
		case !known:
			low = append(low, fmt.Errorf("missing container %q memory usage", name))
		case used >= uint64(to):
			low = append(low, fmt.Errorf("attempting to set container %q memory limit (%d) below current usage (%d)", name, to, used))
		}
	}
	if len(low) > 0 {
		return fmt.Errorf("cannot decrease memory limits: %w", errors.Join(low...))
	}
	return nil
}

// podMemory is the bound of the pod's own cgroup, 0 where one container has no limit.
func podMemory(p *v1.Pod) int64 {
	if resourcehelper.IsPodLevelResourcesSet(p) && !p.Spec.Resources.Limits.Memory().IsZero() {
		return p.Spec.Resources.Limits.Memory().Value()
	}
	for c, kind := range pod.Containers(p) {
		if kind != pod.Ephemeral && c.Resources.Limits.Memory().IsZero() {
			return 0
		}
	}
	limits := resourcehelper.PodLimits(p, resourcehelper.PodResourcesOptions{})
	return limits.Memory().Value()
}
