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
)

// resize brings what the pod has in line with what it was given. The pod's cgroup is as
// large as either asks for while its containers change, so that no moment of it is
// narrower than what they have, or get.
func (s *PodSteps) resize(ctx context.Context, w pod.Work, observed *pod.Observed, updates []plan.Update) error {
	began := s.deps.Clock.Now()
	err := s.tryResize(ctx, w.Pod, observed, updates)
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
	return fmt.Errorf("resize the pod: %w", err)
}

func (s *Steps) tryResize(ctx context.Context, p *v1.Pod, observed *pod.Observed, updates []plan.Update) error {
	// What the pod was given is written down before it has any of it: an agent that dies on
	// the way goes on with it.
	if err := s.keep(ctx, p); err != nil {
		return err
	}
	have := s.actual(p.UID)
	if err := s.guardMemory(ctx, p, observed, *have, updates); err != nil {
		return err
	}
	had, _ := have.Apply(p)
	widest := largest(p, *have)
	if err := s.bound(ctx, widest, had, observed); err != nil {
		return err
	}
	// What shrinks makes room for what grows.
	slices.SortStableFunc(updates, func(a, b plan.Update) int { return grows(p, a) - grows(p, b) })
	for _, u := range updates {
		if err := s.deps.Runtime.UpdateResources(ctx, p, u.Container, u.ID); err != nil {
			return err
		}
		s.deps.Resizing.Actual.Change(p.UID, func(r *pod.Resources) { r.Containers[u.Container.Name] = pod.Bounded(p, u.Container) })
	}
	if err := s.bound(ctx, p, widest, observed); err != nil {
		return err
	}
	s.deps.Resizing.Actual.Note(p.UID, carried(pod.InForce(p), *have))
	return nil
}

// bound gives the pod as a whole the bounds of to in place of those of from. The runtime is
// told first: it may refuse.
func (s *Steps) bound(ctx context.Context, to, from *v1.Pod, observed *pod.Observed) error {
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

// keep has what is known of the pod's resources survive a crash. It is called before the
// pod has them: they cannot be read back from anywhere, and the spec may ask for others by
// then. A pod that asks for nothing never will.
func (s *Steps) keep(ctx context.Context, p *v1.Pod) error {
	if s.deps.Resizing.Actual == nil || pod.QOS(p) == v1.PodQOSBestEffort {
		return nil
	}
	return together([]Notes{s.deps.Resizing.Given, s.deps.Resizing.Actual}, func(n Notes) error { return n.Written(ctx) })
}

// carried keeps what is not ours to change.
func carried(now, before pod.Resources) pod.Resources {
	now.Volumes = before.Volumes
	return now
}

// grows is 1 where the container gets more memory, or else more CPU, than it has.
func grows(p *v1.Pod, u plan.Update) int {
	want := pod.Bounded(p, u.Container)
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

// actual is what the pod has, nil where pods are never resized.
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

// begin notes what a pod begins with.
func (s *Steps) begin(p *v1.Pod) {
	if s.deps.Resizing.Actual != nil && s.actual(p.UID) == nil {
		s.deps.Resizing.Actual.Note(p.UID, pod.InForce(p))
	}
}

// beginAnew notes that all of the pod starts with what it was given.
func (s *Steps) beginAnew(p *v1.Pod) {
	if have := s.actual(p.UID); have != nil && have.Differ(p) {
		s.deps.Resizing.Actual.Note(p.UID, carried(pod.InForce(p), *have))
	}
}

// beginWith writes down what a container is about to start with. Should it not start, it
// will with the same.
func (s *Steps) beginWith(ctx context.Context, p *v1.Pod, c *v1.Container) error {
	have := s.actual(p.UID)
	if have == nil {
		return nil
	}
	if _, known := have.Containers[c.Name]; !known { // an ephemeral one
		return nil
	}
	want := pod.Bounded(p, c)
	if have.Have(c.Name) == pod.AmountsOf(&want) {
		return nil
	}
	s.deps.Resizing.Actual.Change(p.UID, func(r *pod.Resources) { r.Containers[c.Name] = want })
	return s.keep(ctx, p)
}

// tellResized tells the user of a resize that is complete.
func (s *PodSteps) tellResized(p *v1.Pod, before, now *v1.PodStatus) {
	under := condition(before, v1.PodResizeInProgress)
	if under == nil || condition(now, v1.PodResizeInProgress) != nil {
		return
	}
	s.resizeError = ""
	if actual := s.actual(p.UID); actual == nil || actual.Differ(p) {
		return // it ended on the way
	}
	s.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeNormal, "ResizeCompleted", "%s",
		pod.ResizeMessage("Pod resize completed", p, under.ObservedGeneration, ""))
}

func condition(s *v1.PodStatus, kind v1.PodConditionType) *v1.PodCondition {
	i := slices.IndexFunc(s.Conditions, func(c v1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &s.Conditions[i]
}
