package podsync

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// resize sets the pod's resources to those that are allocated. While its containers change, the
// pod's cgroup has the larger of the old and the new limits, so that it never is smaller than its
// containers.
func (s *PodSteps) resize(ctx context.Context, w pod.Work, observed *pod.Observed, updates []plan.Update) error {
	began := s.deps.Clock.Now()
	err := s.timed(w.Pod, why.Resize, func() error { return s.tryResize(ctx, w.Pod, observed, updates) })
	if s.deps.Meters.Resized != nil {
		s.deps.Meters.Resized(s.deps.Clock.Since(began), err == nil)
	}
	if err == nil {
		s.resizeError = ""
		return nil
	}
	if s.resizeError != err.Error() {
		s.resizeError = err.Error()
		s.deps.Events.Eventf(pod.EventRef(w.Pod, ""), v1.EventTypeWarning, "ResizeError", "%s",
			pod.ResizeMessage("Pod resize error", w.Pod, w.Resize.Granted, err.Error()))
	}
	return fmt.Errorf("resize pod: %w", err)
}

func (s *Steps) tryResize(ctx context.Context, p *v1.Pod, observed *pod.Observed, updates []plan.Update) error {
	// The allocation is on disk before it takes effect: a kubelet that restarts in between
	// continues the resize.
	if err := s.checkpoint(ctx, p); err != nil {
		return err
	}
	have := s.actual(p.UID)
	if err := s.guardMemory(ctx, p, observed, *have, updates); err != nil {
		return err
	}
	had, _ := have.Apply(p)
	transitional := largest(p, *have)
	if err := s.setPodLimits(ctx, transitional, had, observed); err != nil {
		return err
	}
	// Containers that shrink make room for those that grow.
	slices.SortStableFunc(updates, func(a, b plan.Update) int { return grows(p, a) - grows(p, b) })
	for _, u := range updates {
		if err := s.deps.Runtime.UpdateResources(ctx, p, u.Container, u.ID); err != nil {
			return err
		}
		s.deps.Resizing.Actual.Change(p.UID, func(r *pod.Resources) { r.Containers[u.Container.Name] = pod.EffectiveRequirements(p, u.Container) })
	}
	if err := s.setPodLimits(ctx, p, transitional, observed); err != nil {
		return err
	}
	s.deps.Resizing.Actual.Note(p.UID, withVolumes(pod.EffectiveResources(p), *have))
	return nil
}

// setPodLimits changes the pod-level limits from those of from to those of to. It calls the
// runtime first, because the runtime may refuse.
func (s *Steps) setPodLimits(ctx context.Context, to, from *v1.Pod, observed *pod.Observed) error {
	if box := observed.Sandbox(); box != nil && !sameSums(to, from) {
		if err := s.deps.Runtime.UpdateResources(ctx, to, nil, box.ID); err != nil {
			return fmt.Errorf("the runtime refused the resize: %w", err)
		}
	}
	return s.deps.Cgroups.EnsurePod(to)
}

func sameSums(a, b *v1.Pod) bool {
	opts := resourcehelper.PodResourcesOptions{}
	return equality.Semantic.DeepEqual(resourcehelper.PodRequests(a, opts), resourcehelper.PodRequests(b, opts)) &&
		equality.Semantic.DeepEqual(resourcehelper.PodLimits(a, opts), resourcehelper.PodLimits(b, opts))
}

// checkpoint waits until the pod's resources are on disk. It is called before they take effect:
// they cannot be read back from anywhere, and the spec may change meanwhile. A best-effort pod
// cannot be resized, so it needs no checkpoint.
func (s *Steps) checkpoint(ctx context.Context, p *v1.Pod) error {
	if s.deps.Resizing.Actual == nil || pod.QOS(p) == v1.PodQOSBestEffort {
		return nil
	}
	return inParallel([]Checkpoint{s.deps.Resizing.Allocated, s.deps.Resizing.Actual}, func(n Checkpoint) error { return n.Written(ctx) })
}

// withVolumes returns now with the volumes of before, which a resize does not change.
func withVolumes(now, before pod.Resources) pod.Resources {
	now.Volumes = before.Volumes
	return now
}

// grows returns 1 if the container gets more memory or, with equal memory, more CPU.
func grows(p *v1.Pod, u plan.Update) int {
	want := pod.EffectiveRequirements(p, u.Container)
	to := pod.AmountsOf(&want)
	more := to.CPULimit > u.Have.CPULimit || to.CPULimit == u.Have.CPULimit && to.CPURequest > u.Have.CPURequest
	if to.MemoryLimit != u.Have.MemoryLimit {
		more = to.MemoryLimit > u.Have.MemoryLimit
	}
	if more {
		return 1
	}
	return 0
}

// actual returns the resources in force, nil where pods are not resized.
func (s *Steps) actual(uid types.UID) *pod.Resources {
	if s.deps.Resizing.Actual == nil {
		return nil
	}
	r, known := s.deps.Resizing.Actual.Get(uid)
	if !known {
		return nil
	}
	return &r
}

// recordInitial records the resources with which a pod starts.
func (s *Steps) recordInitial(p *v1.Pod) {
	if s.deps.Resizing.Actual != nil && s.actual(p.UID) == nil {
		s.deps.Resizing.Actual.Note(p.UID, pod.EffectiveResources(p))
	}
}

// recordNewSandbox records that all containers start with their allocated resources.
func (s *Steps) recordNewSandbox(p *v1.Pod) {
	if have := s.actual(p.UID); have != nil && have.Differs(p) {
		s.deps.Resizing.Actual.Note(p.UID, withVolumes(pod.EffectiveResources(p), *have))
	}
}

// recordStart records the resources with which a container is about to start, and waits until
// they are on disk. If the start fails, the next one has the same resources.
func (s *Steps) recordStart(ctx context.Context, p *v1.Pod, c *v1.Container) error {
	have := s.actual(p.UID)
	if have == nil {
		return nil
	}
	if _, known := have.Containers[c.Name]; !known { // an ephemeral one
		return nil
	}
	want := pod.EffectiveRequirements(p, c)
	if have.ContainerAmounts(c.Name) == pod.AmountsOf(&want) {
		return nil
	}
	s.deps.Resizing.Actual.Change(p.UID, func(r *pod.Resources) { r.Containers[c.Name] = want })
	return s.checkpoint(ctx, p)
}

// resizeCompleted records an event if the status no longer shows a resize in progress.
func (s *PodSteps) resizeCompleted(p *v1.Pod, before, now *v1.PodStatus) {
	inProgress := condition(before, v1.PodResizeInProgress)
	if inProgress == nil || condition(now, v1.PodResizeInProgress) != nil {
		return
	}
	s.resizeError = ""
	if actual := s.actual(p.UID); actual == nil || actual.Differs(p) {
		return // the pod ended before the resize did
	}
	s.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeNormal, "ResizeCompleted", "%s",
		pod.ResizeMessage("Pod resize completed", p, inProgress.ObservedGeneration, ""))
}

func condition(s *v1.PodStatus, kind v1.PodConditionType) *v1.PodCondition {
	i := slices.IndexFunc(s.Conditions, func(c v1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &s.Conditions[i]
}
