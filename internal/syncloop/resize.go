package syncloop

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// allocate puts what the pod was given in the place of what it asks for, having asked
// whether it may have that now. It reports a pod that is new to this agent and asks for
// something else than an earlier one gave it: all others come first.
func (l *Loop) allocate(c *pod.Change) (later bool) {
	if l.deps.Allocator == nil {
		return false
	}
	switch {
	case c.Pod.DeletionTimestamp == nil && (c.Op == pod.Update || c.Op == pod.Reconcile):
		c.Pod, c.Resize, _ = l.deps.Allocator.Resize(c.Pod, l.deps.Workers.Active(), "pod_updated")
		return false
	case c.Op == pod.Add && c.Pod.DeletionTimestamp == nil:
		_, differ := l.deps.Allocator.Given(c.Pod)
		return differ
	}
	c.Pod, _ = l.deps.Allocator.Given(c.Pod)
	return false
}

// readmit admits pods that ask for something else than they have. Each is admitted with
// what it has, and asked about the rest when the others are in.
func (l *Loop) readmit(changes []pod.Change) {
	var admitted []pod.Change
	var beside []*v1.Pod // those that no worker counts yet
	for _, c := range changes {
		given, _ := l.deps.Allocator.Given(c.Pod)
		if l.deps.Admit != nil && !l.deps.Workers.Known(c.Pod.UID) && !pod.IsTerminal(c.Pod.Status.Phase) {
			if failure := l.deps.Admit(given, append(l.deps.Workers.Active(), beside...)); failure != nil {
				c.Pod = given
				l.deps.Workers.Handle(c, failure)
				continue
			}
		}
		admitted, beside = append(admitted, c), append(beside, given)
	}
	for i, c := range admitted {
		c.Pod, c.Resize, _ = l.deps.Allocator.Resize(c.Pod, append(l.deps.Workers.Active(), beside[i:]...), "pods_added")
		l.deps.Workers.Handle(c, nil)
	}
}

// give lets a new pod have what it asks for.
func (l *Loop) give(c pod.Change) {
	if l.deps.Allocator != nil && c.Op == pod.Add && c.Pod.DeletionTimestamp == nil && !pod.IsTerminal(c.Pod.Status.Phase) {
		l.deps.Allocator.Admit(c.Pod)
	}
}

// roomBy is what may have made room, in the reference kubelet's words.
func roomBy(changes []pod.Change) string {
	has := func(is func(pod.Change) bool) bool { return slices.ContainsFunc(changes, is) }
	switch {
	case has(func(c pod.Change) bool { return c.Op == pod.Remove }):
		return "pods_removed"
	case has(func(c pod.Change) bool { return pod.IsTerminal(c.Pod.Status.Phase) }):
		return "pod_terminated"
	case has(func(c pod.Change) bool { return c.Op == pod.Update }):
		return "pod_updated"
	case has(func(c pod.Change) bool { return c.Op == pod.Add }):
		return "pods_added"
	}
	return "pod_resized"
}

// retryResizes asks again about the pods whose resize waits for room.
func (l *Loop) retryResizes(trigger string) {
	if l.deps.Allocator == nil || !l.ready {
		return
	}
	var waiting []*v1.Pod
	for _, uid := range l.deps.Allocator.Deferred() {
		if p, wanted := l.deps.Desired.Get(uid); wanted && p.DeletionTimestamp == nil {
			waiting = append(waiting, p)
		}
	}
	slices.SortFunc(waiting, l.deps.Allocator.Turn)
	for _, p := range waiting {
		given, resize, changed := l.deps.Allocator.Resize(p, l.deps.Workers.Active(), trigger)
		if changed {
			l.deps.Workers.Handle(pod.Change{Op: pod.Update, Pod: given, Resize: resize}, nil)
		}
	}
}
