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

// largest returns the pod with the larger of its actual and its allocated resources for each
// container. No limit is the largest.
func largest(p *v1.Pod, have pod.Resources) *v1.Pod {
	both := p.DeepCopy()
	both.Status.QOSClass = pod.QOS(p) // a mixture of both must not change the class
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

// guardMemory returns an error for memory limits below the current usage: the kernel would reject
// them or kill processes.
func (s *Steps) guardMemory(ctx context.Context, p *v1.Pod, observed *pod.Observed, have pod.Resources, updates []plan.Update) error {
	had, _ := have.Apply(p)
	before, wanted := podMemory(had), podMemory(p)
	whole := wanted != 0 && (before == 0 || wanted < before)
	each := map[string]int64{}
	for _, u := range updates {
		bounded := pod.EffectiveRequirements(p, u.Container)
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

// podMemory returns the memory limit of the pod's cgroup, 0 if a container has no limit.
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
