package status

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// adopt replaces the status of a static pod by that of its mirror when the mirror first becomes known, and
// reports whether it did. An earlier agent published that status. What was derived without it lacks the
// readiness, the start time and the transition times, so it must not be written. The pod's worker, which
// is woken when a mirror is found, then derives the status again.
func (e *entry) adopt(mirror *v1.Pod) bool {
	if e.target != "" || !pod.IsStatic(e.pod) {
		return false
	}
	e.target = mirror.UID
	if len(mirror.Status.ContainerStatuses) == 0 || isEndedMirror(mirror) {
		return false
	}
	e.status, e.dirty = *mirror.Status.DeepCopy(), false
	return true
}
