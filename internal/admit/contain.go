package admit

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/contain"
	"swiftlet/internal/pod"
)

// decision is what is decided on a change.
type decision struct {
	change  pod.Change
	failure *pod.Failure
	// held changes wait for a read of the Node, resized ones until the others are decided on.
	held, resized bool
}

// contain calls decide for a change. All pods share the sync loop, so a panic must harm the pod alone; after a
// restart of the agent its pod would be decided on again. After a panic a new pod is rejected unless it runs already,
// and a change of its resources is dropped. ok is false then. Deletion and removal are passed on.
func (a *Admission) contain(c pod.Change, decide func() decision) (d decision, ok bool) {
	d, err := contain.Value(func() (decision, error) { return decide(), nil })
	if err == nil {
		return d, true
	}
	a.deps.Panics.Report("admission", err, pod.RefOf(c.Pod).Attr())
	d = decision{change: c}
	switch {
	case c.Op == pod.Remove || c.Pod.DeletionTimestamp != nil:
		return d, true
	case c.Op != pod.Add:
		return d, false
	}
	if observed, _ := a.deps.Observed(c.Pod.UID); len(observed.Live()) > 0 {
		return d, true // it was admitted by an earlier agent
	}
	rejection := pod.Reject("UnexpectedAdmissionError", "Unexpected error during admission: %v", err)
	a.deps.Events.Eventf(pod.EventRef(c.Pod, ""), v1.EventTypeWarning, rejection.Reason, "%s", rejection.Message)
	d.failure = rejection.Failure(true)
	return d, true
}
